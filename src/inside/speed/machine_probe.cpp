#include "inside/speed/machine_probe.h"

#include <algorithm>
#include <chrono>

namespace kilin {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSeconds = 0.06;        // of each measurement
constexpr size_t kSlicesPerThread = 16;  // many, so that nobody waits long for a thread that the system stopped
constexpr size_t kBytesPerThread = 256u << 20;
constexpr uint64_t kRoundsPerSlice = 1u << 16;  // some 100 microseconds

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Repeats a loop on all threads until the time is up. @returns loops a second
template <typename Loop>
double loops_per_s(Loop loop) {
  size_t loops = 0;
  const Clock::time_point start = Clock::now();
  double seconds = 0;
  while (seconds < kSeconds) {
    loop();
    ++loops;
    seconds = seconds_since(start);
  }
  return static_cast<double>(loops) / seconds;
}

}  // namespace

MachinePeaks mean(const MachinePeaks& a, const MachinePeaks& b) {
  return {.read_bytes_per_s = (a.read_bytes_per_s + b.read_bytes_per_s) / 2,
          .int8_operations_per_s = (a.int8_operations_per_s + b.int8_operations_per_s) / 2,
          .fp32_operations_per_s = (a.fp32_operations_per_s + b.fp32_operations_per_s) / 2,
          .bf16_operations_per_s = (a.bf16_operations_per_s + b.bf16_operations_per_s) / 2};
}

size_t MachineProbe::suitable_bytes_per_thread(uint64_t available_bytes, size_t threads) {
  const uint64_t eighth = available_bytes / 8 / std::max<size_t>(threads, 1);
  return std::clamp<uint64_t>(eighth, 1u << 20, kBytesPerThread);
}

MachineProbe::MachineProbe(Isa isa, size_t threads, size_t bytes_per_thread)
    : peaks_(*peaks_of(isa)),
      bf16_(bf16_dot_peak(CpuInfo::detect())),
      pool_(threads),
      stream_bytes_(std::max<size_t>(bytes_per_thread / kSlicesPerThread / 2 / kReadStep, 1) * kReadStep) {
  const size_t slices = pool_.size() * kSlicesPerThread;
  memory_ = Reservation(slices * 2 * stream_bytes_, "memory of the bandwidth probe");
  memory_.ask_for_huge_pages();
  pool_.parallel_for(slices, 1, [&](const Slice& s) {
    for (size_t i = s.begin; i < s.end; ++i)  // writes, so that pages are not all the system's zero page
      std::fill_n(memory_.data() + i * 2 * stream_bytes_, 2 * stream_bytes_, static_cast<std::byte>(i + 1));
  });
}

MachinePeaks MachineProbe::measure() {
  return {.read_bytes_per_s = read_bytes_per_s(),
          .int8_operations_per_s = operations_per_s(peaks_.int8_dot),
          .fp32_operations_per_s = operations_per_s(peaks_.fp32_fma),
          .bf16_operations_per_s = operations_per_s(bf16_)};
}

double MachineProbe::operations_per_s(const ArithmeticPeak& peak) {
  if (!peak.exists()) return 0;
  const size_t slices = pool_.size() * kSlicesPerThread;
  const double loops = loops_per_s([&] {
    pool_.parallel_for(slices, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) peak.run(kRoundsPerSlice);
    });
  });
  return loops * static_cast<double>(slices * kRoundsPerSlice * peak.operations_per_round);
}

double MachineProbe::read_bytes_per_s() {
  const size_t slices = pool_.size() * kSlicesPerThread;
  const double loops = loops_per_s([&] {
    pool_.parallel_for(slices, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) {
        const std::byte* first = memory_.data() + i * 2 * stream_bytes_;
        peaks_.read(first, first + stream_bytes_, stream_bytes_);
      }
    });
  });
  return loops * static_cast<double>(memory_.bytes());
}

}  // namespace kilin

// Times kernels and a loop that runs at the machine's peak in alternation: on a machine whose clock and memory drift, their
// ratio says more than either time. The median over the iterations is printed. Benchmarks that use these functions need
// UseManualTime.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "core/float_mode.h"
#include "kernels/peaks.h"

namespace kilin::bench {

template <typename F>
double seconds_of(F&& f) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Operations a second of a peak's loop, the better of two runs of some ten microseconds.
inline double operations_per_s(const ArithmeticPeak& peak) {
  constexpr uint64_t kRounds = 1500;
  double least = 1e300;
  for (int i = 0; i < 2; ++i) least = std::min(least, seconds_of([&] { benchmark::DoNotOptimize(peak.run(kRounds)); }));
  return static_cast<double>(peak.operations_per_round * kRounds) / least;
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Runs the benchmark's loop. @param share gives the share that a call of so many seconds reached; the median is the counter
/// `name`
template <typename Kernel, typename Share>
void run_beside(benchmark::State& state, const char* name, Kernel&& kernel, Share&& share) {
  const FloatModeGuard float_mode;  // as in the product: decaying states would become subnormal
  std::vector<double> shares;
  kernel();
  for (auto _ : state) {
    const double seconds = seconds_of(kernel);
    state.SetIterationTime(seconds);
    shares.push_back(share(seconds));
  }
  state.counters[name] = median(shares);
}

/// Compares with a peak of arithmetic: `of_peak` is the share of it that a call of `operations` reaches.
template <typename F>
void run_beside_peak(benchmark::State& state, const ArithmeticPeak& peak, double operations, F&& kernel) {
  run_beside(state, "of_peak", kernel, [&](double seconds) { return operations / seconds / operations_per_s(peak); });
  state.counters["operations/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
}

inline void count_bytes(benchmark::State& state, size_t bytes) {
  state.counters["B/s"] = benchmark::Counter(static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate,
                                             benchmark::Counter::kIs1024);
}

/// Compares with a pass that only reads: `of_read` is its time over the kernel's.
template <typename F>
void run_beside_read(benchmark::State& state, const PeakTable& peaks, std::span<const std::byte> bytes, F&& kernel) {
  const size_t half = bytes.size() / 2 / kReadStep * kReadStep;
  run_beside(state, "of_read", kernel, [&](double seconds) {
    return seconds_of([&] { benchmark::DoNotOptimize(peaks.read(bytes.data(), bytes.data() + half, half)); }) / seconds;
  });
  count_bytes(state, bytes.size());
}

/// Compares with a pass that reads and writes `floats` of memory: `of_pass` is the pass's time over the kernel's.
template <typename F>
void run_beside_pass(benchmark::State& state, std::vector<float>& floats, F&& kernel) {
  run_beside(state, "of_pass", kernel, [&](double seconds) {
    return seconds_of([&] {
             for (float& x : floats) x *= 0.999f;
             benchmark::ClobberMemory();
           }) /
           seconds;
  });
  count_bytes(state, 2 * sizeof(float) * floats.size());
}

}  // namespace kilin::bench

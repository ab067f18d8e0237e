// Measures what the machine can do at this moment: peaks of arithmetic and of reading from memory, on as many threads as the
// engine has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/reservation.h"
#include "core/thread_pool.h"
#include "kernels/peaks.h"

namespace kilin {

/// Rates of all threads together. 0 if there is no such instruction.
struct MachinePeaks {
  double read_bytes_per_s = 0;
  double int8_operations_per_s = 0;  ///< the kernels' own dot product of bytes
  double fp32_operations_per_s = 0;
  double bf16_operations_per_s = 0;
};

/// The mean of the peaks measured before and after some work.
MachinePeaks mean(const MachinePeaks& a, const MachinePeaks& b);

/// A shared machine's clock and bandwidth drift within seconds, so a figure is compared with peaks of the same moment. A
/// measurement takes a quarter of a second; make one right before and one right after the work.
class MachineProbe {
 public:
  /// Allocates and touches more memory than caches hold: see memory_bytes. @throws ResourceExhausted
  /// @param isa whose instructions to measure. @param bytes_per_thread to read; a few times a thread's share of the last-level
  /// cache
  MachineProbe(Isa isa, size_t threads, size_t bytes_per_thread);

  MachinePeaks measure();

  size_t memory_bytes() const { return memory_.bytes(); }

  /// What a thread should read: 256 MB, or less so that all threads together take at most an eighth of the available memory.
  static size_t suitable_bytes_per_thread(uint64_t available_bytes, size_t threads);

 private:
  double operations_per_s(const ArithmeticPeak& peak);
  double read_bytes_per_s();

  PeakTable peaks_;
  ArithmeticPeak bf16_;
  ThreadPool pool_;
  Reservation memory_;
  size_t stream_bytes_;  // of each of a slice's two streams
};

}  // namespace kilin

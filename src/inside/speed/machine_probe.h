// What the machine gives at this moment: peaks of arithmetic and of reading from memory, on as many threads as the engine has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/reservation.h"
#include "core/thread_pool.h"
#include "kernels/peaks.h"

namespace kilin {

/// A second's worth on all threads together. 0 where there is no such instruction.
struct MachinePeaks {
  double read_bytes_per_s = 0;
  double int8_operations_per_s = 0;  ///< the kernels' own dot product of bytes
  double fp32_operations_per_s = 0;
  double bf16_operations_per_s = 0;
};

/// Of what was measured before some work and after it.
MachinePeaks mean(const MachinePeaks& a, const MachinePeaks& b);

/// A shared machine's clock and bandwidth drift within seconds, so a figure is held against peaks of the same moment: a
/// measurement takes a quarter of a second, to be taken right before and right after the work.
class MachineProbe {
 public:
  /// Takes and touches memory of which nothing stays in caches: see memory_bytes. @throws ResourceExhausted
  /// @param isa whose instructions to measure. @param bytes_per_thread to read; a few times the last cache's share of a thread
  MachineProbe(Isa isa, size_t threads, size_t bytes_per_thread);

  MachinePeaks measure();

  size_t memory_bytes() const { return memory_.bytes(); }

  /// What a thread should read where so much memory can be taken: 256 MB, or less, so that an eighth is never exceeded.
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

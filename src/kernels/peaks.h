// Measures a CPU's peaks, with which a benchmark compares the kernels: loops that do only one kind of arithmetic, or only read,
// with the instructions that the kernels of the same set use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace kilin {

/// One kind of arithmetic on registers alone, in chains enough to hide its latency.
struct ArithmeticPeak {
  uint64_t operations_per_round = 0;  ///< a multiplication and an addition count as two
  /// @returns a result that depends on everything computed, so that no compiler can leave any of it out
  float (*run)(uint64_t rounds) noexcept = nullptr;

  bool exists() const { return run != nullptr; }
};

struct PeakTable {
  ArithmeticPeak int8_dot;  ///< the set's dot product of four bytes
  ArithmeticPeak fp32_fma;  ///< a product and a sum of floats, fused where the set can
  /// Reads two streams of `bytes` bytes each, side by side. @pre bytes is a multiple of kReadStep
  /// @returns the exclusive or of their 32-bit words
  uint32_t (*read)(const std::byte* first, const std::byte* second, size_t bytes) noexcept = nullptr;
};

inline constexpr size_t kReadStep = 256;

/// nullptr if this build has none for `isa`. Call its functions only on a CPU that supports it; see `supports`.
const PeakTable* peaks_of(Isa isa);

/// The dot product of pairs of bf16 (vdpbf16ps). Its `run` is null if this build or `cpu` lacks the instruction.
ArithmeticPeak bf16_dot_peak(const CpuInfo& cpu);

}  // namespace kilin

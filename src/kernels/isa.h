// The tables of the single instruction sets, and the internals that tests need.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.h"
#include "kernels/peaks.h"

namespace kilin {

/// Functions of generic/math.inl over arrays, for tests.
struct MathTable {
  void (*exp)(const float* x, size_t n, float* out);
  void (*softplus)(const float* x, size_t n, float* out);
  void (*sigmoid)(const float* x, size_t n, float* out);
};

/// nullptr if this build has none for `isa`. Call its functions only on a CPU that supports it; see `supports`.
const KernelTable* kernels_of(Isa isa);
const MathTable* math_of(Isa isa);

bool supports(const CpuInfo& cpu, Isa isa);

namespace scalar {
extern const KernelTable kKernels;
extern const MathTable kMath;
extern const PeakTable kPeaks;
}  // namespace scalar
#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kKernels;
extern const MathTable kMath;
extern const PeakTable kPeaks;
}  // namespace avx2
namespace avx512 {
extern const KernelTable kKernels;
extern const MathTable kMath;
extern const PeakTable kPeaks;
}  // namespace avx512
namespace avx2_vnni {
extern const KernelTable kKernels;
extern const MathTable kMath;
extern const PeakTable kPeaks;
}  // namespace avx2_vnni
namespace avx512_vnni {
extern const KernelTable kKernels;
extern const MathTable kMath;
extern const PeakTable kPeaks;
}  // namespace avx512_vnni
namespace avx512_bf16 {
const KernelTable& kernels();  // avx512_vnni::kKernels except for the ops that bf16 instructions make faster
}  // namespace avx512_bf16
#endif

}  // namespace kilin

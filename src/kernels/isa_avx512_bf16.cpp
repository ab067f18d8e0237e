// AVX-512 with VNNI and BF16: products of bf16 in one instruction a pair. All other kernels are those of AVX-512 VNNI, compiled
// there: only two ops differ, and a copy of every other kernel would only be more to compile, to test and to load.
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/generic/includes.h"

KILIN_TARGET_BEGIN("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")
namespace kilin::avx512_bf16 {

// Register tiles: rows x columns of dot products; keys or rows of attention, two vectors wide.
inline constexpr size_t kDotRows = 6, kDotColumns = 4, kScoreRows = 8;

#include "kernels/generic/vec_avx512.inl"

#include "kernels/generic/bf16_dot_avx512_bf16.inl"

#include "kernels/generic/math.inl"

#include "kernels/generic/vector_steps.inl"

#include "kernels/generic/register_tiles.inl"

#include "kernels/generic/prefetch.inl"

#include "kernels/generic/dot_products.inl"

#include "kernels/generic/matmul_bf16.inl"

#include "kernels/generic/mla_decode_bf16.inl"

}  // namespace kilin::avx512_bf16
KILIN_TARGET_END

namespace kilin::avx512_bf16 {

const KernelTable& kernels() {
  static const KernelTable table = [] {
    KernelTable kernels = avx512_vnni::kKernels;
    kernels.isa = Isa::Avx512Bf16;
    kernels.matmul_bf16 = matmul_bf16;
    kernels.mla_decode_block_bf16 = mla_decode_block_bf16;
    return kernels;
  }();
  return table;
}

}  // namespace kilin::avx512_bf16

#endif

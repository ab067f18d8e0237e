// The peak of bf16 dot products, an extension of AVX-512 that no vec_*.inl covers.
#include "kernels/peaks.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/generic/includes.h"

KILIN_TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512bf16,avx2,fma")
namespace kilin::avx512_bf16 {

namespace {

constexpr size_t kChains = 12, kFloats = 16;

// Adds two products of 1 and 2^-24 per lane: fp32 holds the sum exactly for millions of rounds, then it stops growing.
float run_bf16_dots(uint64_t rounds) noexcept {
  __m512 acc[kChains];
  const __m512bh w = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  __m512i x = _mm512_set1_epi32(0x33803380);
  KILIN_UNROLL
  for (size_t c = 0; c < kChains; ++c) acc[c] = _mm512_setzero_ps();
  for (uint64_t round = 0; round < rounds; ++round) {
    KILIN_UNROLL
    for (size_t c = 0; c < kChains; ++c) {
      asm volatile("" : "+v"(x));
      acc[c] = _mm512_dpbf16_ps(acc[c], w, reinterpret_cast<__m512bh>(x));
    }
  }
  float lanes[kFloats], sum = 0;
  for (size_t c = 0; c < kChains; ++c) {
    _mm512_storeu_ps(lanes, acc[c]);
    for (float lane : lanes) sum += lane;
  }
  return sum;
}

}  // namespace

}  // namespace kilin::avx512_bf16
KILIN_TARGET_END

namespace kilin {

ArithmeticPeak bf16_dot_peak(const CpuInfo& cpu) {
  if (!cpu.avx512 || !cpu.avx512_bf16) return {};
  using namespace avx512_bf16;
  return {.operations_per_round = kChains * kFloats * 4, .run = run_bf16_dots};
}

}  // namespace kilin

#else

namespace kilin {

ArithmeticPeak bf16_dot_peak(const CpuInfo&) { return {}; }

}  // namespace kilin

#endif

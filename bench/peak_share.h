// What a CPU can do at most, measured beside a benchmark: the clock and the neighbours of a shared machine drift within
// seconds.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <span>

#include "kernels/generic/target.h"
#include "kernels/kernel_table.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kilin::bench {

/// A loop that does nothing but one kind of arithmetic, on registers. `run` is null where the CPU has none.
struct Peak {
  double flop_a_round = 0;
  float (*run)(size_t rounds) = nullptr;
};

#if defined(__x86_64__)
inline constexpr size_t kChains = 12;  // enough to hide the latency, few enough for sixteen registers

// Each chain starts elsewhere: equal ones would become one.
__attribute__((target("avx2,fma"))) inline float fma_avx2(size_t rounds) {
  const __m256 x = _mm256_set1_ps(0.5f);
  __m256 sum[kChains];
  KILIN_UNROLL
  for (size_t c = 0; c < kChains; ++c) sum[c] = _mm256_set1_ps(static_cast<float>(c));
  for (size_t i = 0; i < rounds; ++i) {
    KILIN_UNROLL
    for (size_t c = 0; c < kChains; ++c) sum[c] = _mm256_fmadd_ps(x, x, sum[c]);
  }
  KILIN_UNROLL
  for (size_t c = 1; c < kChains; ++c) sum[0] += sum[c];
  return sum[0][0];
}

__attribute__((target("avx512f"))) inline float fma_avx512(size_t rounds) {
  const __m512 x = _mm512_set1_ps(0.5f);
  __m512 sum[kChains];
  KILIN_UNROLL
  for (size_t c = 0; c < kChains; ++c) sum[c] = _mm512_set1_ps(static_cast<float>(c));
  for (size_t i = 0; i < rounds; ++i) {
    KILIN_UNROLL
    for (size_t c = 0; c < kChains; ++c) sum[c] = _mm512_fmadd_ps(x, x, sum[c]);
  }
  KILIN_UNROLL
  for (size_t c = 1; c < kChains; ++c) sum[0] += sum[c];
  return sum[0][0];
}

__attribute__((target("avx512f,avx512bf16"))) inline float dot_bf16(size_t rounds) {
  const __m512bh x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f003f00));  // pairs of 0.5
  __m512 sum[kChains];
  KILIN_UNROLL
  for (size_t c = 0; c < kChains; ++c) sum[c] = _mm512_set1_ps(static_cast<float>(c));
  for (size_t i = 0; i < rounds; ++i) {
    KILIN_UNROLL
    for (size_t c = 0; c < kChains; ++c) sum[c] = _mm512_dpbf16_ps(sum[c], x, x);
  }
  KILIN_UNROLL
  for (size_t c = 1; c < kChains; ++c) sum[0] += sum[c];
  return sum[0][0];
}
#endif

/// Fused multiply-adds of fp32, by the widest vectors of the set.
inline Peak fma_peak(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::Avx512) return {2.0 * 16 * kChains, fma_avx512};
  if (isa >= Isa::Avx2) return {2.0 * 8 * kChains, fma_avx2};
#endif
  return {};
}

/// vdpbf16ps; where the set has none, the fused multiply-adds that stand in for it.
inline Peak bf16_peak(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512Bf16) return {4.0 * 16 * kChains, dot_bf16};
#endif
  return fma_peak(isa);
}

/// Reads all of it once, as two streams. @pre a multiple of 128 bytes
inline uint64_t read(std::span<const std::byte> bytes) {
  using Line = uint64_t __attribute__((vector_size(64)));
  Line sum[2] = {};
  const size_t half = bytes.size() / 2;
  for (size_t i = 0; i < half; i += sizeof(Line)) {
    Line first, second;
    std::memcpy(&first, bytes.data() + i, sizeof first);
    std::memcpy(&second, bytes.data() + half + i, sizeof second);
    sum[0] ^= first;
    sum[1] ^= second;
  }
  return sum[0][0] ^ sum[1][7];
}

/// Runs `body` in the benchmark's loop, with the peak's loop right before and after it: the counter "of_peak" is the share of
/// the peak that `flop` a call are, by the thread's CPU time; "of_read", where the weights are more than caches hold, the share
/// of what a loop that only reads them takes.
template <typename Body>
void run_beside(benchmark::State& state, const Peak& peak, double flop, std::span<const std::byte> weights, Body body) {
  const auto seconds = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  constexpr size_t kRounds = 100'000;  // some milliseconds
  const bool from_memory = weights.size() > size_t{128} << 20;
  double in_peak = 0, in_read = 0;
  const auto measure_peaks = [&] {
    const double start = seconds();
    if (peak.run) benchmark::DoNotOptimize(peak.run(kRounds));
    const double middle = seconds();
    if (from_memory) benchmark::DoNotOptimize(read(weights));
    in_peak += middle - start;
    in_read += seconds() - middle;
  };
  measure_peaks();
  const double start = seconds();
  for (auto _ : state) body();
  const double a_call = (seconds() - start) / static_cast<double>(state.iterations());
  measure_peaks();
  if (peak.run) state.counters["of_peak"] = flop / a_call / (2 * kRounds * peak.flop_a_round / in_peak);
  if (from_memory) state.counters["of_read"] = in_read / 2 / a_call;
}

}  // namespace kilin::bench

// Kernels timed beside a loop that nothing can beat, in alternation: on a machine whose clock and memory drift, their ratio is
// worth more than either. What is printed is the median over the iterations.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/float_mode.h"
#include "kernels/kernel_table.h"

namespace kilin::bench {

template <typename F>
double seconds_of(F&& f) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Two instructions a cycle of a latency of four or five, in sixteen registers. Each chain begins with a number of its own: of
// equal ones the compiler would run one.
constexpr size_t kChains = 12;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) inline float fma_rounds_avx512(size_t rounds) {
  __m512 acc[kChains];
  for (size_t c = 0; c < kChains; ++c) acc[c] = _mm512_set1_ps(static_cast<float>(c));
  const __m512 half = _mm512_set1_ps(0.5f), one = _mm512_set1_ps(1);
  for (size_t round = 0; round < rounds; ++round)
#pragma GCC unroll 16
    for (size_t c = 0; c < kChains; ++c) acc[c] = _mm512_fmadd_ps(acc[c], half, one);
  float sum = 0;
  for (const __m512& a : acc) sum += _mm512_cvtss_f32(a);
  return sum;
}

__attribute__((target("avx2,fma"))) inline float fma_rounds_avx2(size_t rounds) {
  __m256 acc[kChains];
  for (size_t c = 0; c < kChains; ++c) acc[c] = _mm256_set1_ps(static_cast<float>(c));
  const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1);
  for (size_t round = 0; round < rounds; ++round)
#pragma GCC unroll 16
    for (size_t c = 0; c < kChains; ++c) acc[c] = _mm256_fmadd_ps(acc[c], half, one);
  float sum = 0;
  for (const __m256& a : acc) sum += _mm256_cvtss_f32(a);
  return sum;
}
#endif

/// Four floats, a product and a sum: all that the baseline has.
inline float fma_rounds_scalar(size_t rounds) {
  using Four = float __attribute__((vector_size(16)));
  Four acc[kChains];
  for (size_t c = 0; c < kChains; ++c) acc[c] = Four{} + static_cast<float>(c);
  for (size_t round = 0; round < rounds; ++round)
#pragma GCC unroll 16
    for (size_t c = 0; c < kChains; ++c) acc[c] = acc[c] * 0.5f + 1.0f;
  float sum = 0;
  for (const Four& a : acc) sum += a[0];
  return sum;
}

/// FLOP/s of a loop of fp32 FMAs in an instruction set's registers, the better of two short ones.
inline double fma_peak(Isa isa) {
  constexpr size_t kRounds = 1500;  // some ten microseconds
  float (*loop)(size_t) = fma_rounds_scalar;
  double width = 4;
#if defined(__x86_64__)
  if (isa == Isa::Avx2 || isa == Isa::Avx2Vnni) loop = fma_rounds_avx2, width = 8;
  if (isa == Isa::Avx512 || isa == Isa::Avx512Vnni) loop = fma_rounds_avx512, width = 16;
#endif
  double least = 1e300;
  for (int i = 0; i < 2; ++i) least = std::min(least, seconds_of([&] { benchmark::DoNotOptimize(loop(kRounds)); }));
  return 2 * width * kChains * kRounds / least;
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Runs the benchmark's loop; needs UseManualTime. `of_peak` is the share of the FMA peak that `flop` operations a call reach.
template <typename F>
void run_beside_peak(benchmark::State& state, Isa isa, double flop, F&& kernel) {
  const FloatModeGuard float_mode;  // as in the product: states that fade away would be subnormal
  std::vector<double> shares;
  kernel();
  for (auto _ : state) {
    const double seconds = seconds_of(kernel);
    state.SetIterationTime(seconds);
    shares.push_back(flop / seconds / fma_peak(isa));
  }
  state.counters["of_peak"] = median(shares);
  state.counters["FLOP/s"] = benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
}

/// The same beside one pass that reads and writes `floats` of memory: `of_pass` is the pass's time over the kernel's.
template <typename F>
void run_beside_pass(benchmark::State& state, std::vector<float>& floats, F&& kernel) {
  const FloatModeGuard float_mode;  // as in the product: states that fade away would be subnormal
  std::vector<double> shares;
  kernel();
  for (auto _ : state) {
    const double seconds = seconds_of(kernel);
    state.SetIterationTime(seconds);
    const double pass = seconds_of([&] {
      for (float& x : floats) x *= 0.999f;
      benchmark::ClobberMemory();
    });
    shares.push_back(pass / seconds);
  }
  state.counters["of_pass"] = median(shares);
  state.counters["B/s"] = benchmark::Counter(2.0 * sizeof(float) * static_cast<double>(floats.size()),
                                             benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1024);
}

}  // namespace kilin::bench

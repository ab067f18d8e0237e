// The loops of kernels/peaks.h.

// Enough chains for two instructions a cycle at a latency of four or five, and few enough for sixteen registers.
inline constexpr size_t kPeakChains = 12;
inline constexpr int kPeakByte = 3;

// Makes the compiler treat `v` as a new value, so that it reuses nothing computed from the old one.
template <typename T>
inline void forget(T& v) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(v));
#else
  asm volatile("" : "+w"(v));
#endif
}

inline float run_int8_dots(uint64_t rounds) noexcept {
  Ints acc[kPeakChains];
  const Ints w = splat_int(kPeakByte * 0x01010101);
  Ints x = splat_int(0x01010101);
  KILIN_UNROLL
  for (size_t c = 0; c < kPeakChains; ++c) acc[c] = splat_int(0);
  for (uint64_t round = 0; round < rounds; ++round) {
    KILIN_UNROLL
    for (size_t c = 0; c < kPeakChains; ++c) {
      forget(x);
      acc[c] = dot4(acc[c], w, x);
    }
  }
  Vec sum = zero();
  KILIN_UNROLL
  for (size_t c = 0; c < kPeakChains; ++c) sum = sum + to_floats(acc[c]);
  return sum_lanes(sum);
}

// Chains a -> a / 2 + 1, which all end at 2: neither product nor sum can be moved out of the loop. Each starts at another
// value, because a compiler merges equal chains.
inline float run_fp32_fmas(uint64_t rounds) noexcept {
  Vec acc[kPeakChains];
  const Vec half = splat(0.5f), one = splat(1.0f);
  KILIN_UNROLL
  for (size_t c = 0; c < kPeakChains; ++c) acc[c] = splat(static_cast<float>(c));
  for (uint64_t round = 0; round < rounds; ++round) {
    KILIN_UNROLL
    for (size_t c = 0; c < kPeakChains; ++c) acc[c] = fma(acc[c], half, one);
  }
  Vec sum = zero();
  KILIN_UNROLL
  for (size_t c = 0; c < kPeakChains; ++c) sum = sum + acc[c];
  return sum_lanes(sum);
}

inline uint32_t read_streams(const std::byte* first, const std::byte* second, size_t bytes) noexcept {
  constexpr size_t kBytes = kWidth * sizeof(float), kLoads = 4;
  static_assert(kReadStep % (kLoads * kBytes) == 0);
  Ints seen[2][kLoads];
  KILIN_UNROLL
  for (size_t i = 0; i < kLoads; ++i) seen[0][i] = seen[1][i] = splat_int(0);
  for (size_t at = 0; at < bytes; at += kLoads * kBytes) {
    KILIN_UNROLL
    for (size_t i = 0; i < kLoads; ++i) {
      seen[0][i] = flip(seen[0][i], load_ints(first + at + i * kBytes));
      seen[1][i] = flip(seen[1][i], load_ints(second + at + i * kBytes));
    }
  }
  Ints all = splat_int(0);
  KILIN_UNROLL
  for (size_t i = 0; i < kLoads; ++i) all = flip(all, flip(seen[0][i], seen[1][i]));
  uint32_t words[kWidth], word = 0;
  std::memcpy(words, &all, sizeof words);
  for (uint32_t w : words) word ^= w;
  return word;
}

// Integer dot products by VNNI, 256 bits, for CPUs without AVX-512.

inline constexpr int kWideBias = 128;

inline Ints dot2(Ints acc, Ints a, Ints b) { return _mm256_dpwssd_avx_epi32(acc, a, b); }
inline Ints dot4(Ints acc, Ints w, Ints x) { return _mm256_dpbusd_avx_epi32(acc, w, x); }
inline Ints dot4_wide(Ints acc, Ints w, Ints x) { return _mm256_dpbusd_avx_epi32(acc, w, x); }

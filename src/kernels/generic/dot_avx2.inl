// Integer dot products without VNNI, 256 bits. maddubs saturates at 16 bits, so eight-bit weights are passed as magnitudes and
// their signs moved to the activations: two products are then at most 2 * 128 * 127.

inline constexpr int kWideBias = 0;

inline Ints dot2(Ints acc, Ints a, Ints b) { return plus(acc, _mm256_madd_epi16(a, b)); }
inline Ints dot4(Ints acc, Ints w, Ints x) { return dot2(acc, _mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)); }
inline Ints dot4_wide(Ints acc, Ints w, Ints x) { return dot4(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w)); }

// Integer dot products without VNNI, 512 bits. See dot_avx2.inl.

inline constexpr int kWideBias = 0;

inline Ints dot2(Ints acc, Ints a, Ints b) { return plus(acc, _mm512_madd_epi16(a, b)); }
inline Ints dot4(Ints acc, Ints w, Ints x) { return dot2(acc, _mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1)); }
inline Ints dot4_wide(Ints acc, Ints w, Ints x) {
  return dot4(acc, _mm512_abs_epi8(w), _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x));
}

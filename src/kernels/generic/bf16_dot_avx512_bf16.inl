// Dot products of bf16 pairs by vdpbf16ps, 512 bits. See bf16_dot.inl.

inline Vec dot_pairs(Vec acc, Ints a, Ints b) {
  return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

// Rounds both to bf16 and pairs them lane by lane; subnormals become 0.
inline Ints rounded_pairs(Vec lower, Vec upper) {
  const Ints order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
                                      19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_maskz_permutexvar_epi16(~__mmask32{0}, order, reinterpret_cast<Ints>(_mm512_cvtne2ps_pbh(upper, lower)));
}

// Pairs the 16-bit halves of a with those of b: the first 16 of each, or the other 16.
inline Ints first_pairs(Ints a, Ints b) {
  const Ints order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4,
                                      35, 3, 34, 2, 33, 1, 32, 0);
  return _mm512_permutex2var_epi16(a, order, b);
}
inline Ints second_pairs(Ints a, Ints b) {
  const Ints order = _mm512_set_epi16(63, 31, 62, 30, 61, 29, 60, 28, 59, 27, 58, 26, 57, 25, 56, 24, 55, 23, 54, 22, 53, 21,
                                      52, 20, 51, 19, 50, 18, 49, 17, 48, 16);
  return _mm512_permutex2var_epi16(a, order, b);
}

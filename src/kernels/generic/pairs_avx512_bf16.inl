// Products of pairs of bf16 by vdpbf16ps, 512 bits. See pairs.inl.

inline Vec dot_pairs(Vec acc, Ints a, Ints b) {
  return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

// Pairs of a's and b's halves: the first 16 halves', and the others'.
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

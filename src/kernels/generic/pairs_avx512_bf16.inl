// Products of pairs of bf16 by vdpbf16ps, 512 bits. See pairs.inl.

inline Vec dot_pairs(Vec acc, Ints a, Ints b) {
  return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

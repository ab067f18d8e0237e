// Products of pairs of bf16 without an instruction of their own. dot_pairs adds, in each lane, the products of two neighbours:
// the upper 16 bits', then the lower's, each fused, which is the order of vdpbf16ps.

inline Vec dot_pairs(Vec acc, Ints a, Ints b) {
  return fma(lower_of_pairs(a), lower_of_pairs(b), fma(upper_of_pairs(a), upper_of_pairs(b), acc));
}

// Dot products of bf16 pairs for CPUs without an instruction for them. dot_pairs adds two products in each lane, that of the
// upper 16 bits first, then that of the lower, each fused: the order of vdpbf16ps.

inline Vec dot_pairs(Vec acc, Ints a, Ints b) {
  return fma(lower_of_pairs(a), lower_of_pairs(b), fma(upper_of_pairs(a), upper_of_pairs(b), acc));
}

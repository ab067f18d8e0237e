// Steps through arrays by vectors, the last one masked; rounding to bf16, and access to bf16 pairs.

// Calls op(i, n) for every vector of n <= kWidth elements of [0, size).
template <typename Op>
inline void for_each_vector(size_t size, Op op) {
  size_t i = 0;
  for (; i + kWidth <= size; i += kWidth) op(i, kWidth);
  if (i < size) op(i, size - i);
}

// A full vector uses the plain load; only the last vector of a row is masked.
inline Vec load_up_to(const float* p, size_t n) { return n == kWidth ? load(p) : load_first(p, n); }
inline void store_up_to(float* p, Vec v, size_t n) {
  if (n == kWidth)
    store(p, v);
  else
    store_first(p, v, n);
}

// to[n step] = sum_lanes(v[n]).
template <size_t N>
inline void store_sums(const Vec (&v)[N], float* to, size_t step) {
  KILIN_UNROLL
  for (size_t n = 0; n < N; ++n) to[n * step] = sum_lanes(v[n]);
}

// The upper half of each lane is the bf16.
inline Vec round_to_bf16(Vec v) {
  const Ints bits = bits_of(v);
  const Ints odd = both(shift_right<16>(bits), splat_int(1));
  const Ints rounded = plus(bits, plus(odd, splat_int(0x7fff)));
  const Ints quiet_nan = plus(both(bits, splat_int(~0x400000)), splat_int(0x400000));
  return from_bits(select(is_nan(v), quiet_nan, rounded));
}

struct RoundToBf16 {
  const float* x;
  bf16* out;
  void operator()(size_t i, size_t n) const {
    if (n == kWidth) return store_upper_halves(out + i, round_to_bf16(load(x + i)));
    bf16 rounded[kWidth];
    store_upper_halves(rounded, round_to_bf16(load_first(x + i, n)));
    std::memcpy(out + i, rounded, n * sizeof(bf16));
  }
};

// Each half of bf16 pairs in 32 bits, as fp32.
inline Vec upper_of_pairs(Ints a) { return from_bits(both(a, splat_int(~0xffff))); }
inline Vec lower_of_pairs(Ints a) { return from_bits(shift_left<16>(a)); }

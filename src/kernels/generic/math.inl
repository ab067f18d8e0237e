// exp, softplus and sigmoid by lane, within 2 ulp; never libm, whose results differ from one machine to the next. Results below
// the normal range are subnormal or zero, depending on the thread's float mode.

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// e^x: 0 at -inf, inf above 88.73, NaN at NaN. x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series, whose eighth term
// is less than a tenth of an ulp.
inline Vec exp(Vec x) {
  constexpr float kLog2e = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;                  // ten bits: n * kLn2High is exact, so r is exact even without fma
  constexpr float kLn2Low = -2.12194440e-4f;                // ln 2 - kLn2High
  constexpr float kRound = 12582912.f;                      // 1.5 * 2^23: adding x to it rounds x to an integer in the low bits
  const Vec bounded = min(splat(89), max(splat(-105), x));  // NaN passes
  const Vec shifted = fma(bounded, splat(kLog2e), splat(kRound));
  const Vec n = shifted - splat(kRound);
  const Vec r = fma(n, splat(-kLn2Low), fma(n, splat(-kLn2High), bounded));

  Vec p = splat(1.f / 5040);
  p = fma(p, r, splat(1.f / 720));
  p = fma(p, r, splat(1.f / 120));
  p = fma(p, r, splat(1.f / 24));
  p = fma(p, r, splat(1.f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p * r, r, r) + splat(1);

  // 2^n in two factors: n may leave the range of exponents at both ends.
  const Ints exponent = minus(bits_of(shifted), bits_of(splat(kRound)));
  const Ints half = shift_right<1>(exponent);
  const Ints bias = splat_int(127);
  return p * from_bits(shift_left<23>(plus(half, bias))) * from_bits(shift_left<23>(plus(minus(exponent, half), bias)));
}

// log(1 + u) for 0 <= u <= 1, as 2 artanh(u / (2 + u)).
inline Vec log1p_unit(Vec u) {
  const Vec twice = (u + u) / (u + splat(2));  // 2 s, s <= 1/3; s itself could be flushed to zero when the result would not
  const Vec z = twice * twice * splat(0.25f);
  Vec p = splat(1.f / 15);
  p = fma(p, z, splat(1.f / 13));
  p = fma(p, z, splat(1.f / 11));
  p = fma(p, z, splat(1.f / 9));
  p = fma(p, z, splat(1.f / 7));
  p = fma(p, z, splat(1.f / 5));
  p = fma(p, z, splat(1.f / 3));
  return fma(twice * z, p, twice);
}

// log(1 + e^y). Above 20 it gives y itself: the rest is less than half an ulp.
inline Vec softplus(Vec y) { return max(zero(), y) + log1p_unit(exp(zero() - abs(y))); }

inline Vec sigmoid(Vec x) { return splat(1) / (splat(1) + exp(zero() - x)); }

inline float exp(float x) { return first_lane(exp(splat(x))); }

// Over arrays, for tests.
template <typename Function>
inline void map_array(const float* x, size_t n, float* out, Function function) {
  for (size_t i = 0; i < n; i += kWidth) {
    const size_t lanes = std::min(kWidth, n - i);
    store_first(out + i, function(load_first(x + i, lanes)), lanes);
  }
}
struct ExpFunction {
  Vec operator()(Vec x) const { return exp(x); }
};
struct SoftplusFunction {
  Vec operator()(Vec x) const { return softplus(x); }
};
struct SigmoidFunction {
  Vec operator()(Vec x) const { return sigmoid(x); }
};
void exp(const float* x, size_t n, float* out) { map_array(x, n, out, ExpFunction{}); }
void softplus(const float* x, size_t n, float* out) { map_array(x, n, out, SoftplusFunction{}); }
void sigmoid(const float* x, size_t n, float* out) noexcept { map_array(x, n, out, SigmoidFunction{}); }

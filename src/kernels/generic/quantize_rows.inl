// Quantises fp32 rows to int8 by groups of 256 columns.

// Quantises one group of n columns. Returns its scale.
inline float quantize_group(const float* x, size_t n, int8_t* values) {
  Vec most = zero(), poison = zero();  // an infinity or a NaN times 0 is a NaN, and stays
  size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Vec v = load(x + i);
    most = max(abs(v), most);
    poison = fma(v, zero(), poison);
  }
  if (i < n) {
    const Vec v = load_first(x + i, n - i);
    most = max(abs(v), most);
    poison = fma(v, zero(), poison);
  }
  const float magnitude = max_lane(most), not_finite = sum_lanes(poison);
  if (not_finite != 0 || magnitude < kInt8LeastMagnitude) {
    std::memset(values, 0, n);
    return not_finite;
  }
  const Vec inverse = splat(127.f / magnitude);
  for (i = 0; i + kWidth <= n; i += kWidth) store_low_bytes(values + i, round_to_ints(load(x + i) * inverse));
  if (i < n) {
    int8_t last[kWidth];
    store_low_bytes(last, round_to_ints(load_first(x + i, n - i) * inverse));
    std::memcpy(values + i, last, n - i);
  }
  return magnitude / 127.f;
}

// Sums each kInt8SumGroup values; the last group may have fewer.
inline void sum_groups(const int8_t* values, size_t n, int16_t* sums) {
  constexpr size_t kQuads = kInt8SumGroup / 4, kAtOnce = std::max(kWidth, kQuads);  // sums of four values: by dot4
  size_t k = 0;
  for (; k + 4 * kAtOnce <= n; k += 4 * kAtOnce) {
    int32_t of_four[kAtOnce];
    for (size_t q = 0; q < kAtOnce; q += kWidth) {
      const Ints sums_of_four = dot4(splat_int(0), splat_int(0x01010101), load_ints(values + k + 4 * q));
      std::memcpy(of_four + q, &sums_of_four, sizeof sums_of_four);
    }
    for (size_t q = 0; q < kAtOnce; q += kQuads) {
      int32_t sum = 0;
      KILIN_UNROLL
      for (size_t i = 0; i < kQuads; ++i) sum += of_four[q + i];
      *sums++ = static_cast<int16_t>(sum);
    }
  }
  for (; k < n; k += kInt8SumGroup) {
    int32_t sum = 0;
    for (size_t i = k; i < std::min(k + kInt8SumGroup, n); ++i) sum += values[i];
    *sums++ = static_cast<int16_t>(sum);
  }
}

void quantize_rows(MatView<const float> x, const Int8Rows& out) noexcept {
  assert(x.rows() == out.rows() && x.cols() == out.cols());
  for (size_t t = 0; t < x.rows(); ++t) {
    int8_t* values = out.values.row(t);
    for (size_t k = 0; k < x.cols(); k += kInt8Group)
      out.scales.row(t)[k / kInt8Group] = quantize_group(x.row(t) + k, std::min(kInt8Group, x.cols() - k), values + k);
    sum_groups(values, x.cols(), out.sums.row(t));
  }
}

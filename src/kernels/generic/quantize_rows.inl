// fp32 rows to int8 by groups of 256 columns.

// One group of n columns: its scale.
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

void quantize_rows(MatView<const float> x, const Int8Rows& out) noexcept {
  assert(x.rows() == out.rows() && x.cols() == out.cols());
  for (size_t t = 0; t < x.rows(); ++t) {
    int8_t* values = out.values.row(t);
    for (size_t k = 0; k < x.cols(); k += kInt8Group)
      out.scales.row(t)[k / kInt8Group] = quantize_group(x.row(t) + k, std::min(kInt8Group, x.cols() - k), values + k);
    int16_t* sums = out.sums.row(t);
    for (size_t k = 0; k < x.cols(); k += kInt8SumGroup) {
      int sum = 0;
      for (size_t i = k; i < std::min(k + kInt8SumGroup, x.cols()); ++i) sum += values[i];
      sums[k / kInt8SumGroup] = static_cast<int16_t>(sum);
    }
  }
}

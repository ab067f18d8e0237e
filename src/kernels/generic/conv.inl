// The short convolution of KDA's q, k and v: channels in lanes, tokens one after the other.

// Computes some channels of one token from `rows`, the tokens that it sees, oldest first.
struct ConvToken {
  const float* const* rows;
  MatView<const float> weight;
  float* out;

  void operator()(size_t c, size_t n) const {
    Vec sum = zero();
    for (size_t j = 0; j < weight.rows(); ++j) sum = fma(load_up_to(weight.row(j) + c, n), load_up_to(rows[j] + c, n), sum);
    store_up_to(out + c, sum * sigmoid(sum), n);
  }
};

void causal_conv_silu(MatView<const float> x, MatView<const float> weight, MatView<float> tail, MatView<float> out) noexcept {
  assert(weight.rows() >= 1 && weight.rows() <= kMaxConvWidth && tail.rows() + 1 == weight.rows());
  const size_t tokens = x.rows(), past = tail.rows(), bytes = x.cols() * sizeof(float);
  const float* rows[kMaxConvWidth];
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t j = 0; j <= past; ++j) rows[j] = t + j < past ? tail.row(t + j) : x.row(t + j - past);
    for_each_vector(x.cols(), ConvToken{rows, weight, out.row(t)});
  }
  // Keep the last rows of (tail, x). Ascending, so that row i comes from a row that is not overwritten yet.
  for (size_t i = 0; i < past && tokens > 0; ++i)
    std::memcpy(tail.row(i), tokens + i < past ? tail.row(tokens + i) : x.row(tokens + i - past), bytes);
}

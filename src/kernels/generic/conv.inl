// The short convolution of KDA's q, k and v: channels in lanes, tokens one after the other.

struct ConvChannels {
  MatView<const float> x;
  MatView<const float> weight;
  MatView<float> tail;
  MatView<float> out;

  void operator()(size_t c, size_t n) const {
    const size_t tokens = x.rows(), width = weight.cols(), past = width - 1;
    Vec w[kMaxConvWidth];
    for (size_t j = 0; j < width; ++j) {
      float column[kWidth] = {};
      for (size_t lane = 0; lane < n; ++lane) column[lane] = weight.row(c + lane)[j];
      w[j] = load(column);
    }
    for (size_t t = 0; t < tokens; ++t) {
      Vec sum = zero();
      for (size_t j = 0; j < width; ++j) sum = fma(w[j], joined(t + j, c, n, past), sum);
      store_up_to(out.row(t) + c, sum * sigmoid(sum), n);
    }
    if (tokens == 0) return;
    for (size_t i = 0; i < past; ++i)  // ascending: row i comes from a row that was not written yet
      store_up_to(tail.row(i) + c, joined(tokens + i, c, n, past), n);
  }

  // Row i of the tail followed by x.
  Vec joined(size_t i, size_t c, size_t n, size_t past) const {
    return load_up_to(i < past ? tail.row(i) + c : x.row(i - past) + c, n);
  }
};

void causal_conv_silu(MatView<const float> x, MatView<const float> weight, MatView<float> tail, MatView<float> out) noexcept {
  assert(weight.cols() >= 1 && weight.cols() <= kMaxConvWidth && tail.rows() + 1 == weight.cols());
  for_each_vector(x.cols(), ConvChannels{x, weight, tail, out});
}

// The gated delta rule of one head, token by token, a panel of 16 value channels at a time.

struct ExpOf {
  const float* g;
  float* decay;
  void operator()(size_t d, size_t n) const { store_up_to(decay + d, exp(load_up_to(g + d, n)), n); }
};

// Sums over d run in four chains, because a single one would stall on its own latency.
struct RecurrentStep {
  static constexpr size_t kChains = 4, kVectors = kKdaPanel / kWidth;
  size_t K;
  float* S;  // [K][16]
  const float *q, *k, *decay;
  Vec sum[kChains][kVectors];

  // The decayed state is computed twice rather than stored in between: a store costs more than a product.
  Vec decayed(size_t d, size_t p) const { return load(S + d * kKdaPanel + p * kWidth) * splat(decay[d]); }

  void predict(size_t d, size_t c) {
    KILIN_UNROLL
    for (size_t p = 0; p < kVectors; ++p) sum[c][p] = fma(splat(k[d]), decayed(d, p), sum[c][p]);
  }
  void correct_and_read(size_t d, size_t c, const Vec (&correction)[kVectors]) {
    KILIN_UNROLL
    for (size_t p = 0; p < kVectors; ++p) {
      const Vec corrected = fma(splat(k[d]), correction[p], decayed(d, p));
      store(S + d * kKdaPanel + p * kWidth, corrected);
      sum[c][p] = fma(splat(q[d]), corrected, sum[c][p]);
    }
  }
  Vec total(size_t p) const { return (sum[0][p] + sum[1][p]) + (sum[2][p] + sum[3][p]); }

  // v and out: `columns` <= 16 channels.
  void run(float beta, const float* v, float* out, size_t columns) {
    clear(sum);
    size_t d = 0;
    for (; d + kChains <= K; d += kChains) {
      KILIN_UNROLL
      for (size_t c = 0; c < kChains; ++c) predict(d + c, c);
    }
    for (size_t c = 0; d < K; ++d, ++c) predict(d, c);

    Vec correction[kVectors];
    size_t lanes[kVectors];
    for (size_t p = 0; p < kVectors; ++p) {
      lanes[p] = columns > p * kWidth ? std::min(kWidth, columns - p * kWidth) : 0;
      correction[p] = splat(beta) * (load_first(v + p * kWidth, lanes[p]) - total(p));
    }
    clear(sum);
    for (d = 0; d + kChains <= K; d += kChains) {
      KILIN_UNROLL
      for (size_t c = 0; c < kChains; ++c) correct_and_read(d + c, c, correction);
    }
    for (size_t c = 0; d < K; ++d, ++c) correct_and_read(d, c, correction);
    for (size_t p = 0; p < kVectors; ++p) store_first(out + p * kWidth, total(p), lanes[p]);
  }
};

void fused_recurrent_kda(const KdaHead& head, std::span<float> scratch) noexcept {
  const size_t tokens = head.q.rows(), K = head.k.cols(), V = head.v.cols();
  assert(scratch.size() >= kRecurrentTokens * K && head.snapshots.empty());
  float* decay = scratch.data();
  for (size_t first = 0; first < tokens; first += kRecurrentTokens) {
    const size_t n = std::min(kRecurrentTokens, tokens - first);
    for (size_t i = 0; i < n; ++i) for_each_vector(K, ExpOf{head.g.row(first + i), decay + i * K});
    for (size_t column = 0; column < V; column += kKdaPanel)
      for (size_t i = 0; i < n; ++i) {
        const size_t t = first + i;
        RecurrentStep step{K, head.state + column * K, head.q.row(t), head.k.row(t), decay + i * K, {}};
        step.run(head.beta[t * head.beta_stride], head.v.row(t) + column, head.out.row(t) + column,
                 std::min(kKdaPanel, V - column));
      }
  }
}

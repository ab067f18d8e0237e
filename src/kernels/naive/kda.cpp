// The gated delta rule, token by token.
#include <algorithm>
#include <cmath>

#include "kernels/naive/naive.h"

namespace kilin::naive {

void fused_recurrent_kda(const KdaHead& head, std::span<float>) noexcept {
  const size_t tokens = head.q.rows(), K = head.k.cols(), V = head.v.cols();
  const auto S = [&](size_t k, size_t v) -> float& { return head.state[kda_state_index(K, k, v)]; };
  auto snapshot = head.snapshots.begin();

  for (size_t t = 0; t < tokens; ++t) {
    const float *q = head.q.row(t), *k = head.k.row(t), *g = head.g.row(t);
    const float beta = head.beta[t * head.beta_stride];
    for (size_t i = 0; i < K; ++i) {
      const float decay = std::exp(g[i]);
      for (size_t v = 0; v < V; ++v) S(i, v) *= decay;
    }
    for (size_t v = 0; v < V; ++v) {
      float predicted = 0, read = 0;
      for (size_t i = 0; i < K; ++i) predicted += k[i] * S(i, v);
      const float correction = beta * (head.v.row(t)[v] - predicted);
      for (size_t i = 0; i < K; ++i) S(i, v) += k[i] * correction;
      for (size_t i = 0; i < K; ++i) read += q[i] * S(i, v);
      head.out.row(t)[v] = read;
    }
    if (snapshot != head.snapshots.end() && snapshot->position == head.start + t + 1) {
      std::copy_n(head.state, kda_state_floats(K, V), snapshot->state);
      ++snapshot;
    }
  }
}

// The chunk form computes the same sums in another order; the token-by-token form is the oracle of both.
void chunk_kda(const KdaHead& head, std::span<float> scratch) noexcept { fused_recurrent_kda(head, scratch); }

}  // namespace kilin::naive

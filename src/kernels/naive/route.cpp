// The router of the mixture of experts.
#include <array>
#include <cassert>
#include <cmath>

#include "kernels/choose_experts.h"
#include "kernels/naive/naive.h"

namespace kilin::naive {

void route(MatView<const float> logits, const float* bias, const RouteParams& params, MatView<int32_t> ids,
           MatView<float> weights) noexcept {
  const size_t experts = logits.cols();
  assert(experts <= kMaxExperts && params.top_k <= experts);
  std::array<float, kMaxExperts> score, choice;

  for (size_t t = 0; t < logits.rows(); ++t) {
    for (size_t e = 0; e < experts; ++e) {
      score[e] = 1 / (1 + std::exp(-logits.row(t)[e]));
      choice[e] = score[e] + bias[e];
    }
    choose_experts(choice.data(), experts, params, ids.row(t));

    float sum = 0;
    for (size_t slot = 0; slot < params.top_k; ++slot) sum += score[static_cast<size_t>(ids.row(t)[slot])];
    for (size_t slot = 0; slot < params.top_k; ++slot) {
      const float unbiased = score[static_cast<size_t>(ids.row(t)[slot])];
      weights.row(t)[slot] = (params.renormalize ? unbiased / (sum + 1e-20f) : unbiased) * params.scale;
    }
  }
}

}  // namespace kilin::naive

// The router of the mixture of experts.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "kernels/naive/naive.h"

namespace kilin::naive {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// The `count` best of value[0, n) get chosen = true; ties go to the lower index.
void choose_best(const float* value, size_t n, size_t count, bool* chosen) {
  std::fill_n(chosen, n, false);
  for (size_t c = 0; c < count; ++c) {
    size_t best = n;
    for (size_t i = 0; i < n; ++i)
      if (!chosen[i] && (best == n || value[i] > value[best])) best = i;
    chosen[best] = true;
  }
}

float sum_of_two_best(const float* value, size_t n) {
  float first = kNone, second = kNone;
  for (size_t i = 0; i < n; ++i) {
    if (value[i] > first)
      second = first, first = value[i];
    else if (value[i] > second)
      second = value[i];
  }
  return n == 1 ? first : first + second;
}

}  // namespace

void route(MatView<const float> logits, const float* bias, const RouteParams& params, MatView<int32_t> ids,
           MatView<float> weights) {
  const size_t experts = logits.cols(), group_size = experts / params.groups;
  assert(experts <= kMaxExperts && params.top_k <= experts);
  std::array<float, kMaxExperts> score, choice, group_score;
  std::array<bool, kMaxExperts> chosen;

  for (size_t t = 0; t < logits.rows(); ++t) {
    for (size_t e = 0; e < experts; ++e) {
      score[e] = 1 / (1 + std::exp(-logits.row(t)[e]));
      choice[e] = score[e] + bias[e];
    }
    if (params.top_groups < params.groups) {
      for (size_t g = 0; g < params.groups; ++g) group_score[g] = sum_of_two_best(&choice[g * group_size], group_size);
      choose_best(group_score.data(), params.groups, params.top_groups, chosen.data());
      for (size_t e = 0; e < experts; ++e)
        if (!chosen[e / group_size]) choice[e] = kNone;
    }
    choose_best(choice.data(), experts, params.top_k, chosen.data());

    float sum = 0;
    for (size_t e = 0, slot = 0; e < experts; ++e) {
      if (!chosen[e]) continue;
      ids.row(t)[slot] = static_cast<int32_t>(e);
      weights.row(t)[slot++] = score[e];
      sum += score[e];
    }
    for (size_t slot = 0; slot < params.top_k; ++slot) {
      float& weight = weights.row(t)[slot];
      if (params.renormalize) weight /= sum + 1e-20f;
      weight *= params.scale;
    }
  }
}

}  // namespace kilin::naive

#include "kernels/choose_experts.h"

#include <algorithm>
#include <limits>

namespace kilin {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Sets chosen = true for the `count` best of value[0, n), starting from all false. Exactly `count` are chosen whatever the
// values: the first candidate left is only replaced by a strictly larger one, never by a NaN or an equal.
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
  if (n == 1) return value[0];
  float first = kNone, second = kNone;
  for (size_t i = 0; i < n; ++i) {
    if (value[i] > first)
      second = first, first = value[i];
    else if (value[i] > second)
      second = value[i];
  }
  return first + second;
}

}  // namespace

void choose_experts(float* choice, size_t experts, const RouteParams& params, int32_t* ids) {
  bool chosen[kMaxExperts];
  if (params.top_groups < params.groups) {
    float group_score[kMaxExperts];
    const size_t group_size = experts / params.groups;
    for (size_t g = 0; g < params.groups; ++g) group_score[g] = sum_of_two_best(choice + g * group_size, group_size);
    choose_best(group_score, params.groups, params.top_groups, chosen);
    for (size_t e = 0; e < experts; ++e)
      if (!chosen[e / group_size]) choice[e] = kNone;
  }
  choose_best(choice, experts, params.top_k, chosen);
  for (size_t e = 0; e < experts; ++e)
    if (chosen[e]) *ids++ = static_cast<int32_t>(e);
}

}  // namespace kilin

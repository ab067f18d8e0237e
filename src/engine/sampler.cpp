#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/random.h"

namespace kilin {

namespace {

// Best first; of equals the lower id.
constexpr auto kBetter = [](const auto& a, const auto& b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); };

std::optional<int32_t> argmax(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (*best == -std::numeric_limits<float>::infinity()) return std::nullopt;
  return static_cast<int32_t>(best - logits.begin());
}

}  // namespace

void SamplingParams::validate(const Names& names) const {
  const auto require = [](bool holds, const char* name, double value, const char* expected) {
    if (!holds) raise(ErrorCode::InvalidArgument, "{} is {}; expected {}", name, value, expected);
  };
  require(repetition_penalty > 0 && std::isfinite(repetition_penalty), names.repetition_penalty, repetition_penalty,
          "a number above 0");
  require(temperature >= 0 && std::isfinite(temperature), names.temperature, temperature, "0 or a number above it");
  require(top_p > 0 && top_p <= 1, names.top_p, top_p, "above 0, at most 1");
  require(min_p >= 0 && min_p <= 1, names.min_p, min_p, "0 to 1");
}

Sampler::Sampler(const KernelTable& kernels, size_t vocab_size) : kernels_(kernels), seen_(vocab_size) {
  candidates_.reserve(vocab_size);
}

std::optional<int32_t> Sampler::sample(std::span<float> logits, const SamplingParams& params, std::span<const int32_t> history,
                                       uint64_t position) {
  if (std::ranges::any_of(logits, [](float x) { return std::isnan(x); })) return std::nullopt;
  if (params.repetition_penalty != 1.0) penalize(logits, params.repetition_penalty, history);
  // A temperature whose inverse is no float is 0 for all that can be told.
  if (!(1 / params.temperature <= double{std::numeric_limits<float>::max()})) return argmax(logits);
  const double uniform = random_uniform(params.seed, position);
  const bool all = (params.top_k == 0 || params.top_k >= logits.size()) && params.top_p >= 1 && params.min_p <= 0;
  return all ? draw_from_all(logits, params.temperature, uniform) : draw_from_best(logits, params, uniform);
}

void Sampler::penalize(std::span<float> logits, double penalty, std::span<const int32_t> history) {
  for (int32_t id : history) {
    const auto i = static_cast<size_t>(id);
    if (std::exchange(seen_[i], 1)) continue;
    const double x = logits[i];
    logits[i] = static_cast<float>(x > 0 ? x / penalty : x * penalty);
  }
  for (int32_t id : history) seen_[static_cast<size_t>(id)] = 0;
}

std::optional<int32_t> Sampler::draw_from_all(std::span<float> logits, double temperature, double uniform) {
  float max = 0;
  double sum = 0;
  kernels_.max_and_exp_sum(logits.data(), logits.size(), static_cast<float>(1 / temperature), max, sum);
  if (!std::isfinite(max)) return argmax(logits);
  kernels_.exp_shifted(logits.data(), logits.size(), max, static_cast<float>(1 / temperature), logits.data());
  double left = uniform * sum;
  for (size_t i = 0; i < logits.size(); ++i)
    if ((left -= logits[i]) < 0) return static_cast<int32_t>(i);
  return argmax(logits);  // the sums rounded differently: the last crumb goes to the most probable
}

std::optional<int32_t> Sampler::draw_from_best(std::span<float> logits, const SamplingParams& params, double uniform) {
  const auto scale = static_cast<float>(1 / params.temperature);
  float max = 0;
  double total = 0;  // of the probabilities that top-p counts, times a constant
  kernels_.max_and_exp_sum(logits.data(), logits.size(), scale, max, total);
  if (!std::isfinite(max)) return argmax(logits);
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  const auto weight = [&](const Candidate& c) {
    float p = 0;
    kernels_.exp_shifted(&c.logit, 1, max, scale, &p);
    return double{p};
  };

  size_t limit = candidates_.size();
  size_t sorted = 0;
  const auto sort_up_to = [&](size_t n) {  // the first n candidates become the best n, in order
    n = std::min(n, limit);
    if (n <= sorted) return;
    const auto from = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted);
    std::partial_sort(from, candidates_.begin() + static_cast<std::ptrdiff_t>(n), candidates_.end(), kBetter);
    sorted = n;
  };
  if (params.top_k > 0 && params.top_k < limit) {
    sort_up_to(params.top_k);
    limit = params.top_k;
    total = 0;
    for (size_t i = 0; i < limit; ++i) total += weight(candidates_[i]);
  }

  // Best first until top-p is reached or min-p is missed; sorted in growing parts, since a few candidates usually do.
  size_t kept = 0;
  double mass = 0;
  while (kept < limit && mass < params.top_p * total) {
    if (kept == sorted) sort_up_to(std::max<size_t>(64, 4 * sorted));
    const double w = weight(candidates_[kept]);
    if (kept > 0 && w < params.min_p) break;  // the best one's weight is 1
    mass += w;
    ++kept;
  }
  double left = uniform * mass;
  for (size_t i = 0; i < kept; ++i)
    if ((left -= weight(candidates_[i])) < 0) return candidates_[i].id;
  return candidates_[0].id;
}

}  // namespace kilin

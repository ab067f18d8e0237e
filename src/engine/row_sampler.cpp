#include "engine/row_sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "engine/logit_scan.h"

namespace kilin {

namespace {

constexpr size_t kBlock = 1024;  // weights at a time, where all ids are drawn from

// How many candidates are put aside and sorted before a row is taken for a flat one, which is divided into buckets.
constexpr size_t kAside = 256;
static_assert(kAside <= Candidates::kMost / 2);

// In double, and in an order that does not wait for each sum before the next.
double sum_of(std::span<const float> values) {
  std::array<double, 8> sums{};
  size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size())
    for (size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += static_cast<double>(values[i + lane]);
  for (; i < values.size(); ++i) sums[0] += static_cast<double>(values[i]);
  double sum = 0;
  for (double lane : sums) sum += lane;
  return sum;
}

}  // namespace

RowSampler::RowSampler(const KernelTable& kernels, size_t vocab_size)
    : kernels_(kernels), seen_((vocab_size + 63) / 64), block_(kBlock), candidates_(kernels), buckets_(kernels) {}

std::optional<int32_t> RowSampler::sample(const SampleRow& row) {
  const SamplingParams& params = *row.params;
  if (params.repetition_penalty != 1.0) penalize(row.logits, params.repetition_penalty, row.history);
  // A temperature whose inverse is no float is 0 for all that can be told.
  if (!(1 / params.temperature <= double{std::numeric_limits<float>::max()})) return argmax(row.logits);
  // One whose inverse vanishes makes all logits equal but -inf, which no factor but 0 changes.
  const float scale = std::max(static_cast<float>(1 / params.temperature), std::numeric_limits<float>::min());
  const double uniform = random_uniform(params.seed, row.position);
  const bool all_ids = params.top_k == 0 || params.top_k >= row.logits.size();
  if (all_ids && params.top_p >= 1 && params.min_p <= 0) return draw_from_all(row.logits, scale, uniform);
  if (!all_ids && params.top_k <= kAside) return draw_from_top_k(row.logits, scale, params, uniform);
  return draw_from_best(row.logits, scale, params, uniform);
}

// In double, where neither a penalty far from 1 nor its product with a logit overflows.
void RowSampler::penalize(std::span<float> logits, double penalty, std::span<const int32_t> history) {
  const auto bit = [](int32_t id) { return uint64_t{1} << (static_cast<uint32_t>(id) % 64); };
  const auto word = [](int32_t id) { return static_cast<size_t>(id) / 64; };
  for (int32_t id : history) {
    if ((seen_[word(id)] & bit(id)) != 0) continue;
    seen_[word(id)] |= bit(id);
    float& logit = logits[static_cast<size_t>(id)];
    const double x = static_cast<double>(logit);
    logit = static_cast<float>(x > 0 ? x / penalty : x * penalty);
  }
  for (int32_t id : history) seen_[word(id)] = 0;
}

// Where the largest logit is no number, or a NaN makes the sum one, there is nothing to draw; argmax tells what is left.
std::optional<int32_t> RowSampler::draw_from_all(std::span<const float> logits, float scale, double uniform) {
  float max = 0;
  double sum = 0;
  kernels_.max_and_exp_sum(logits.data(), logits.size(), scale, max, sum);
  if (!std::isfinite(max) || !std::isfinite(sum)) return argmax(logits);
  double left = uniform * sum;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const std::span<float> weights = std::span(block_).first(std::min(kBlock, logits.size() - begin));
    kernels_.exp_shifted(logits.data() + begin, weights.size(), max, scale, weights.data());
    const double block = sum_of(weights);
    if (left < block) {
      for (size_t i = 0; i < weights.size(); ++i)
        if ((left -= static_cast<double>(weights[i])) < 0) return static_cast<int32_t>(begin + i);
    } else {
      left -= block;
    }
  }
  return argmax(logits);  // the sums rounded differently: the last crumb goes to the most probable
}

std::optional<int32_t> RowSampler::draw_from_top_k(std::span<const float> logits, float scale, const SamplingParams& params,
                                                   double uniform) {
  constexpr float kAnyLogit = -std::numeric_limits<float>::infinity();
  const Candidates::Taken taken = candidates_.take_best(logits, params.top_k, kAnyLogit);
  if (taken == Candidates::Taken::Nan || candidates_.size() == 0) return std::nullopt;
  const float max = candidates_.logit(0);
  if (!std::isfinite(max)) return candidates_.id(0);
  candidates_.set_weights({max, scale});
  double total = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) total += candidates_.weight(i);
  const Walk kept = candidates_.walk({}, {params.top_k, params.top_p * total, params.min_p});
  return draw_from_candidates(kept.count, uniform * kept.mass);
}

std::optional<int32_t> RowSampler::draw_from_best(std::span<const float> logits, float scale, const SamplingParams& params,
                                                  double uniform) {
  float max = 0;
  double total = 0;
  kernels_.max_and_exp_sum(logits.data(), logits.size(), scale, max, total);
  if (!std::isfinite(max) || !std::isfinite(total)) return argmax(logits);
  const LogitWeights weights = {max, scale};
  const bool all_ids = params.top_k == 0 || params.top_k >= logits.size();
  // None weighs more than 1, so that they must be at least as many as they shall weigh together, unless min-p stops before.
  const bool may_be_few = params.min_p > 0 || params.top_p * total < kAside;
  if (all_ids && may_be_few) {
    const Candidates::Taken taken = candidates_.take_best(logits, kAside, weights.logit_of(params.min_p));
    candidates_.set_weights(weights);
    const Walk kept = candidates_.walk({}, {logits.size(), params.top_p * total, params.min_p});
    if (kept.ended || taken == Candidates::Taken::All) return draw_from_candidates(kept.count, uniform * kept.mass);
  }
  return draw_from_buckets(logits, weights, params, total, uniform);
}

// @param left what is still to go of the candidates' weights
int32_t RowSampler::draw_from_candidates(size_t count, double left) {
  for (size_t i = 0; i < count; ++i)
    if ((left -= candidates_.weight(i)) < 0) return candidates_.id(i);
  return candidates_.id(0);  // the sums rounded differently
}

int32_t RowSampler::draw_from_buckets(std::span<const float> logits, const LogitWeights& weights, const SamplingParams& params,
                                      double total, double uniform) {
  constexpr double kAnyMass = std::numeric_limits<double>::infinity();
  const size_t most = params.top_k == 0 ? logits.size() : params.top_k;
  // What min-p drops counts only as a part of top-k, whose weight top-p is a share of.
  buckets_.weigh(logits, weights, most < logits.size() ? 0 : params.min_p);
  if (most < logits.size()) total = buckets_.walk({most, kAnyMass}, candidates_).mass;
  const Walk kept = buckets_.walk({most, params.top_p * total, params.min_p}, candidates_);
  return buckets_.walk({kept.count, std::nextafter(uniform * kept.mass, kAnyMass)}, candidates_).last;
}

}  // namespace kilin

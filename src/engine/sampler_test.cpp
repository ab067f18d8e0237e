#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "support/allocations.h"

namespace kilin {
namespace {

constexpr size_t kVocab = 50;

std::vector<float> some_logits(uint64_t seed, size_t n = kVocab) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(8 * random_uniform(seed, i) - 4);
  return x;
}

int32_t sample(std::vector<float> logits, const SamplingParams& params, uint64_t position = 0,
               std::vector<int32_t> history = {}) {
  Sampler sampler(naive_kernels(), logits.size());
  return sampler.sample(logits, params, history, position).value_or(-1);
}

// The probabilities that the parameters ask for, straight from their definition in fp64.
std::vector<double> reference(const std::vector<float>& logits, const SamplingParams& p) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (p.top_k > 0 && p.top_k < order.size()) order.resize(p.top_k);
  std::vector<double> weights;
  for (size_t i : order) weights.push_back(std::exp((double{logits[i]} - double{logits[order[0]]}) / p.temperature));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t kept = 0;
  for (double mass = 0; kept < order.size() && mass < p.top_p * total; ++kept) {
    if (kept > 0 && weights[kept] < p.min_p) break;
    mass += weights[kept];
  }
  std::vector<double> out(logits.size());
  const double mass = std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  for (size_t i = 0; i < kept; ++i) out[order[i]] = weights[i] / mass;
  return out;
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowerIdOfEquals) {
  EXPECT_EQ(sample({1, 5, 2, 5}, {}), 1);
  EXPECT_EQ(sample({-3, -3}, {}), 0);
}

TEST(Sampler, DrawsWhatItsParametersAskFor) {
  const std::vector<SamplingParams> all = {{.temperature = 1.0},
                                           {.temperature = 0.5},
                                           {.temperature = 1.0, .top_k = 5},
                                           {.temperature = 1.3, .top_p = 0.7},
                                           {.temperature = 1.0, .min_p = 0.2},
                                           {.temperature = 2.0, .top_k = 20, .top_p = 0.9, .min_p = 0.05},
                                           {.temperature = 1.0, .top_k = 1}};
  const std::vector<float> logits = some_logits(1);
  for (size_t c = 0; c < all.size(); ++c) {
    const std::vector<double> expected = reference(logits, all[c]);
    constexpr size_t kDraws = 20000;
    std::vector<double> drawn(kVocab);
    Sampler sampler(naive_kernels(), kVocab);
    for (uint64_t position = 0; position < kDraws; ++position) {
      std::vector<float> scratch = logits;
      drawn[static_cast<size_t>(*sampler.sample(scratch, all[c], {}, position))] += 1.0 / kDraws;
    }
    for (size_t i = 0; i < kVocab; ++i) {
      // Five standard deviations; what must not be drawn is exactly 0.
      EXPECT_NEAR(drawn[i], expected[i], 5 * std::sqrt(expected[i] / kDraws)) << "case " << c << " id " << i;
    }
  }
}

TEST(Sampler, ChanceComesFromSeedAndPositionAlone) {
  const std::vector<float> logits = some_logits(2);
  const SamplingParams params = {.temperature = 1.5, .top_p = 0.95, .seed = 7};
  EXPECT_EQ(sample(logits, params, 12), sample(logits, params, 12));
  std::vector<int32_t> by_position, by_seed;
  for (uint64_t i = 0; i < 20; ++i) {
    by_position.push_back(sample(logits, params, i));
    by_seed.push_back(sample(logits, {.temperature = 1.5, .top_p = 0.95, .seed = i}, 12));
  }
  EXPECT_NE(std::ranges::count(by_position, by_position[0]), 20);
  EXPECT_NE(std::ranges::count(by_seed, by_seed[0]), 20);
}

TEST(Sampler, ThePenaltyDividesPositiveAndMultipliesNegativeLogitsOnce) {
  EXPECT_EQ(sample({4, 3, -1}, {.repetition_penalty = 2}, 0, {0, 0, 0}), 1);    // 4 / 2 = 2 < 3, and not 4 / 8
  EXPECT_EQ(sample({-1, -1.5f}, {.repetition_penalty = 2}, 0, {0}), 1);         // -1 * 2 < -1.5
  EXPECT_EQ(sample({4, 3, -1}, {.repetition_penalty = 0.5}, 0, {1}), 1);        // 3 / 0.5 = 6
  EXPECT_EQ(sample({4, 3.9f}, {.repetition_penalty = 1.02}, 0, {0, 1, 0}), 0);  // both, in proportion
}

TEST(Sampler, ATemperatureNextToZeroIsGreedy) {
  const std::vector<float> logits = some_logits(4);
  const int32_t greedy = sample(logits, {});
  for (double temperature : {1e-3, 1e-38, 1e-39, 5e-324})
    for (double top_p : {1.0, 0.9})
      EXPECT_EQ(sample(logits, {.temperature = temperature, .top_p = top_p}), greedy) << temperature;
}

TEST(Sampler, InfiniteLogitsGiveATokenStill) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sample({1, inf, 0}, {.temperature = 1}), 1);
  EXPECT_EQ(sample({1, inf, 0}, {.temperature = 1, .top_p = 0.5}), 1);
}

TEST(Sampler, GivesNothingWhereALogitIsNoNumberOrNoneIsFinite) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.temperature = 1}, SamplingParams{.temperature = 1, .top_k = 1}})
    for (const std::vector<float>& logits : {std::vector<float>{-inf, -inf}, std::vector<float>{1, nan, 2}})
      EXPECT_EQ(sample(logits, params), -1);
}

TEST(Sampler, DoesNotAllocateAfterItWasMade) {
  Sampler sampler(naive_kernels(), kVocab);
  std::vector<float> logits = some_logits(3);
  const std::vector<int32_t> history = {1, 2};
  const size_t before = testing::allocations();
  sampler.sample(logits, {.repetition_penalty = 1.1, .temperature = 1, .top_k = 40, .top_p = 0.9}, history, 0);
  EXPECT_EQ(testing::allocations(), before);
}

TEST(SamplingParams, ValuesOutOfRangeAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<SamplingParams, const char*>> bad = {{{.temperature = -0.1}, "temperature"},
                                                                   {{.temperature = nan}, "temperature"},
                                                                   {{.temperature = inf}, "temperature"},
                                                                   {{.top_p = 0}, "top_p"},
                                                                   {{.top_p = 1.01}, "top_p"},
                                                                   {{.top_p = nan}, "top_p"},
                                                                   {{.min_p = -1}, "min_p"},
                                                                   {{.min_p = 2}, "min_p"},
                                                                   {{.repetition_penalty = 0}, "repetition"},
                                                                   {{.repetition_penalty = nan}, "repetition"}};
  for (const auto& [params, name] : bad) {
    try {
      params.validate();
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
  EXPECT_NO_THROW(SamplingParams{}.validate());
}

}  // namespace
}  // namespace kilin

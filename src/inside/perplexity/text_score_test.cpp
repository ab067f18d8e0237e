#include "inside/perplexity/text_score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kilin {
namespace {

TEST(TextScore, PerplexityIsThatOfTheMeanSurprise) {
  TextScore score;
  score.add(std::log(2.0));
  score.add(std::log(8.0));
  EXPECT_EQ(score.predictions(), 2u);
  EXPECT_NEAR(score.perplexity(), 4.0, 1e-12);
  EXPECT_NEAR(score.perplexity_error(), 4 * std::log(2.0), 1e-12);  // deviation log 2 of two values, over sqrt(2 - 1)
}

TEST(TextScore, NothingOrOneValueHasNoError) {
  TextScore score;
  EXPECT_EQ(score.perplexity_error(), 0);
  score.add(1);
  EXPECT_EQ(score.perplexity_error(), 0);
}

TEST(Surprise, IsMinusTheLogOfTheProbability) {
  const std::vector<float> logits = {0, std::log(3.0f), -INFINITY};
  EXPECT_NEAR(Prediction(logits).surprise(0), std::log(4.0), 1e-7);
  EXPECT_NEAR(Prediction(logits).surprise(1), std::log(4.0 / 3), 1e-7);
  EXPECT_EQ(Prediction(logits).surprise(2), INFINITY);
}

TEST(Surprise, LargeLogitsDoNotOverflow) {
  EXPECT_NEAR(Prediction(std::vector<float>{3e4f, 3e4f}).surprise(1), std::log(2.0), 1e-9);
}

TEST(Divergence, OfTheSamePredictionsIsZero) {
  const std::vector<float> logits = {1, 2, 3};
  Divergence divergence;
  divergence.add(Prediction(logits), Prediction(logits));
  EXPECT_EQ(divergence.mean(), 0);
  EXPECT_EQ(divergence.largest(), 0);
  EXPECT_EQ(divergence.same_first(), 1);
}

TEST(Divergence, IsWhatItsFormulaSays) {
  // p = (1/4, 3/4), q = (1/2, 1/2)
  Divergence divergence;
  divergence.add(Prediction(std::vector<float>{0, std::log(3.0f)}), Prediction(std::vector<float>{5, 5}));
  EXPECT_NEAR(divergence.mean(), 0.25 * std::log(0.5) + 0.75 * std::log(1.5), 1e-7);
  EXPECT_EQ(divergence.same_first(), 0);  // of equal logits the first counts
}

TEST(Divergence, IgnoresWhatPExcludesAndIsInfiniteForWhatQExcludes) {
  Divergence excluded_by_p, excluded_by_q, no_number, no_base;
  excluded_by_p.add(Prediction(std::vector<float>{0, -INFINITY}), Prediction(std::vector<float>{0, -INFINITY}));
  EXPECT_EQ(excluded_by_p.mean(), 0);
  excluded_by_q.add(Prediction(std::vector<float>{0, 0}), Prediction(std::vector<float>{0, -INFINITY}));
  EXPECT_EQ(excluded_by_q.mean(), INFINITY);
  no_number.add(Prediction(std::vector<float>{0, 0}), Prediction(std::vector<float>{0, NAN}));
  EXPECT_EQ(no_number.mean(), INFINITY);
  no_base.add(Prediction(std::vector<float>{NAN, 0}), Prediction(std::vector<float>{0, 0}));
  no_base.add(Prediction(std::vector<float>{INFINITY, 0}), Prediction(std::vector<float>{0, 0}));
  EXPECT_EQ(no_base.quantile(0), INFINITY) << "both";
}

TEST(Divergence, QuantilesAreByNearestRank) {
  Divergence divergence;
  EXPECT_EQ(divergence.quantile(0.99), 0);
  for (int i = 100; i >= 1; --i)  // q ever closer to p
    divergence.add(Prediction(std::vector<float>{0, 0}), Prediction(std::vector<float>{0, static_cast<float>(i) / 100}));
  Divergence largest;
  largest.add(Prediction(std::vector<float>{0, 0}), Prediction(std::vector<float>{0, 1}));
  EXPECT_EQ(divergence.largest(), largest.mean());
  Divergence second;
  second.add(Prediction(std::vector<float>{0, 0}), Prediction(std::vector<float>{0, 0.99f}));
  EXPECT_EQ(divergence.quantile(0.99), second.mean());
}

}  // namespace
}  // namespace kilin

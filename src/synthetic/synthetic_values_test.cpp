#include "synthetic/synthetic_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/compare.h"
#include "support/configs.h"

namespace kilin {
namespace {

using Kind = SyntheticDistribution::Kind;

std::vector<float> drawn(const SyntheticDistribution& distribution, uint64_t key, size_t n) {
  std::vector<float> values(n);
  fill_synthetic(distribution, key, 0, values);
  return values;
}

struct Moments {
  double mean = 0, deviation = 0, min = 0, max = 0;
};

Moments moments(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (float x : values) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const double n = static_cast<double>(values.size()), mean = sum / n;
  const auto [min, max] = std::ranges::minmax(values);
  return {mean, std::sqrt(squares / n - mean * mean), static_cast<double>(min), static_cast<double>(max)};
}

TEST(SyntheticValues, NormalOnesHaveTheirMeanAndDeviation) {
  const Moments m = moments(drawn({Kind::Normal, 1, 0.1}, 5, 200'000));
  EXPECT_NEAR(m.mean, 1, 1e-3);
  EXPECT_NEAR(m.deviation, 0.1, 1e-3);
  EXPECT_GT(m.max, 1.3);
  EXPECT_LT(m.max, 1.36);
}

TEST(SyntheticValues, UniformOnesFillTheirRange) {
  const Moments m = moments(drawn({Kind::Uniform, -0.5, 0.5}, 5, 100'000));
  EXPECT_NEAR(m.mean, 0, 3e-3);
  EXPECT_NEAR(m.deviation, 1 / std::sqrt(12.0), 3e-3);
  EXPECT_GE(m.min, -0.5);
  EXPECT_LE(m.max, 0.5);
}

TEST(SyntheticValues, ALogIsTheLogarithmOfAUniformNumber) {
  std::vector<float> values = drawn({Kind::LogOfUniform, 1, 16}, 5, 100'000);
  for (float& x : values) x = std::exp(x);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 8.5, 0.05);
  EXPECT_NEAR(m.deviation, 15 / std::sqrt(12.0), 0.05);
  EXPECT_GE(m.min, 1 - 1e-5);
  EXPECT_LE(m.max, 16 + 1e-4);
}

TEST(SyntheticValues, SoftplusOfDtBiasIsLogUniform) {
  std::vector<float> values = drawn({Kind::SoftplusInverse, 1e-3, 0.1}, 5, 100'000);
  for (float& x : values) x = std::log10(std::log1p(std::exp(x)));
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, -2, 0.01);
  EXPECT_NEAR(m.deviation, 2 / std::sqrt(12.0), 0.01);
  EXPECT_GE(m.min, -3 - 1e-5);
  EXPECT_LE(m.max, -1 + 1e-5);
}

TEST(SyntheticValues, AreTheSameInOnePieceAndInMany) {
  for (Kind kind : {Kind::Normal, Kind::Uniform, Kind::LogOfUniform, Kind::SoftplusInverse}) {
    const SyntheticDistribution distribution{kind, 0.01, 0.1};
    const std::vector<float> whole = drawn(distribution, 77, 1000);
    std::vector<float> pieces(1000);
    for (size_t i = 0; i < 1000; i += 125) fill_synthetic(distribution, 77, i, std::span(pieces).subspan(i, 125));
    EXPECT_BYTES_EQ(whole, pieces);
  }
}

TEST(SyntheticValues, DependOnSeedAndName) {
  EXPECT_NE(synthetic_key(0, "a"), synthetic_key(0, "b"));
  EXPECT_NE(synthetic_key(0, "a"), synthetic_key(1, "a"));
  EXPECT_EQ(synthetic_key(3, "a"), synthetic_key(3, "a"));
}

TEST(SyntheticValues, EveryTensorOfTheTableHasARule) {
  const ModelConfig config = ModelConfig::parse(testing::published_config().dump(), "config.json");
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    const SyntheticDistribution distribution = distribution_of(tensor, config);
    const std::string_view name = tensor.name;
    EXPECT_EQ(distribution.kind == Kind::LogOfUniform, name.ends_with("A_log")) << name;
    EXPECT_EQ(distribution.kind == Kind::SoftplusInverse, name.ends_with("dt_bias")) << name;
    EXPECT_EQ(distribution.kind == Kind::Uniform, name.ends_with("conv1d.weight")) << name;
    EXPECT_EQ(distribution.kind == Kind::Normal && distribution.a == 1, name.ends_with("norm.weight")) << name;
    if (name.ends_with("_proj.weight")) {
      EXPECT_DOUBLE_EQ(distribution.b, 1 / std::sqrt(static_cast<double>(tensor.shape[1])));
    }
  }
}

}  // namespace
}  // namespace kilin

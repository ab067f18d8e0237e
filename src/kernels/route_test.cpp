#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "support/compare.h"
#include "support/kernels.h"

namespace kilin {
namespace {

using testing::Form;
using testing::Matrix;
using testing::Random;

struct Routing {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Routing route(const Form& form, const Matrix& logits, const std::vector<float>& bias, const RouteParams& params) {
  const size_t rows = logits.view().rows(), k = params.top_k;
  Routing result{std::vector<int32_t>(rows * k, -1), std::vector<float>(rows * k, -1)};
  form.table.route(logits.view(), bias.data(), params, {result.ids.data(), rows, k}, {result.weights.data(), rows, k});
  return result;
}

Matrix row_of(const std::vector<float>& values) {
  Matrix row(1, values.size());
  for (size_t i = 0; i < values.size(); ++i) row.at(0, i) = values[i];
  return row;
}

double sigmoid_of(float x) { return 1 / (1 + std::exp(-static_cast<double>(x))); }

TEST(Route, WeightsAreUnbiasedRenormalisedAndScaledInAscendingOrderOfExperts) {
  const std::vector<float> logits = {0.1f, 2.f, -1.f, 0.5f, 1.f}, bias = {0, -5, 9, 0, 0};
  const double sum = sigmoid_of(logits[2]) + sigmoid_of(logits[4]);
  for (const Form& form : testing::all_forms()) {
    const Routing r =
        route(form, row_of(logits), bias, {.top_k = 2, .groups = 1, .top_groups = 1, .renormalize = true, .scale = 2.446f});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{2, 4})) << form.name;  // 2 by its bias; 1 loses by its own
    EXPECT_NEAR(r.weights[0], 2.446 * sigmoid_of(logits[2]) / sum, 1e-6) << form.name;
    EXPECT_NEAR(r.weights[1], 2.446 * sigmoid_of(logits[4]) / sum, 1e-6) << form.name;

    const Routing raw =
        route(form, row_of(logits), bias, {.top_k = 2, .groups = 1, .top_groups = 1, .renormalize = false, .scale = 3});
    EXPECT_NEAR(raw.weights[0], 3 * sigmoid_of(logits[2]), 1e-6) << form.name;
  }
}

TEST(Route, TiesGoToTheLowerId) {
  for (const Form& form : testing::all_forms())
    for (size_t experts : {8, 16, 21, 256}) {
      const std::vector<float> zeros(experts, 0.f);
      const Routing r =
          route(form, row_of(zeros), zeros, {.top_k = 4, .groups = 1, .top_groups = 1, .renormalize = true, .scale = 1});
      EXPECT_EQ(r.ids, (std::vector<int32_t>{0, 1, 2, 3})) << form.name;
      std::vector<float> logits(experts, -1.f);
      logits[7] = logits[5] = logits[2] = 1;
      const Routing two =
          route(form, row_of(logits), zeros, {.top_k = 2, .groups = 1, .top_groups = 1, .renormalize = true, .scale = 1});
      EXPECT_EQ(two.ids, (std::vector<int32_t>{2, 5})) << form.name;
    }
}

TEST(Route, KeepsOnlyTheGroupsWhoseTwoBestSumHighest) {
  // Group 0 has the best single expert, group 1 the best pair.
  const std::vector<float> logits = {4.f, -4.f, -4.f, 2.f, 2.f, -4.f, -1.f, -1.f, -1.f}, bias(9, 0.f);
  for (const Form& form : testing::all_forms()) {
    const Routing one =
        route(form, row_of(logits), bias, {.top_k = 2, .groups = 3, .top_groups = 1, .renormalize = true, .scale = 1});
    EXPECT_EQ(one.ids, (std::vector<int32_t>{3, 4})) << form.name;
    const Routing two =
        route(form, row_of(logits), bias, {.top_k = 2, .groups = 3, .top_groups = 2, .renormalize = true, .scale = 1});
    EXPECT_EQ(two.ids, (std::vector<int32_t>{0, 3})) << form.name;
  }
}

TEST(Route, MaskedGroupsLoseEvenToNegativeChoices) {
  // Masked with 0 instead of -inf, group 1 would win: all choices of group 0 are below 0.
  const std::vector<float> logits = {0, 0, 0, -9}, bias = {-2, -2, -3, -3};
  for (const Form& form : testing::all_forms()) {
    const Routing r =
        route(form, row_of(logits), bias, {.top_k = 2, .groups = 2, .top_groups = 1, .renormalize = true, .scale = 1});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{0, 1})) << form.name;
  }
}

TEST(Route, ChoosesWhatTheNaiveFormChooses) {
  for (size_t experts : {4, 12, 60, 256}) {
    Random random(experts);
    const Matrix logits(20, experts, random, -4, 4);
    const std::vector<float> bias = random.vector(experts, -0.1f, 0.1f);
    for (size_t groups : {size_t{1}, size_t{4}}) {
      const RouteParams params{.top_k = std::min<size_t>(8, experts / groups),
                               .groups = groups,
                               .top_groups = groups == 1 ? 1u : 2u,
                               .renormalize = true,
                               .scale = 2.446f};
      const Routing expected = route({"naive", naive_kernels()}, logits, bias, params);
      for (const Form& form : testing::isa_forms()) {
        const Routing r = route(form, logits, bias, params);
        EXPECT_EQ(r.ids, expected.ids) << form.name << " " << experts;
        EXPECT_CLOSE_TO_MAX(r.weights, expected.weights, 1e-6) << form.name << " " << experts;
      }
    }
  }
}

TEST(Route, GivesDistinctIdsWhateverTheLogits) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (const Form& form : testing::all_forms())
    for (const auto& logits :
         {std::vector<float>(12, nan), {nan, 1, nan, 2, -inf, inf, 0, 0, nan, 1, 1, 1}, std::vector<float>(12, -inf)})
      for (size_t top_groups : {1, 4}) {
        const std::vector<float> bias(12, 0.f);
        const Routing r = route(form, row_of(logits), bias,
                                {.top_k = 5, .groups = 4, .top_groups = top_groups, .renormalize = true, .scale = 1});
        const std::set<int32_t> ids(r.ids.begin(), r.ids.end());
        EXPECT_EQ(ids.size(), 5u) << form.name;
        EXPECT_GE(*ids.begin(), 0);
        EXPECT_LT(*ids.rbegin(), 12);
      }
}

}  // namespace
}  // namespace kilin

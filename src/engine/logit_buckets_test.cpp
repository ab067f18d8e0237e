#include "engine/logit_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.h"
#include "engine/logit_scan.h"

namespace kilin {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct NamedRow {
  const char* name;
  std::vector<float> logits;
};

// Rows that are hard on whoever divides a range: most ids in one bucket, ties beyond what fits aside, falling and rising ones.
std::vector<NamedRow> rows(size_t n) {
  std::vector<NamedRow> all = {{"uniform", {}}, {"ties", {}},    {"equal", {}},  {"crowded", {}},
                               {"rising", {}},  {"falling", {}}, {"masked", {}}, {"crowds in crowds", {}}};
  for (size_t i = 0; i < n; ++i) {
    const double u = random_uniform(n, i);
    all[0].logits.push_back(static_cast<float>(8 * u - 4));
    all[1].logits.push_back(static_cast<float>(std::floor(8 * u) / 2));
    all[2].logits.push_back(-3);
    all[3].logits.push_back(i % 1000 == 7 ? static_cast<float>(9 * u) : static_cast<float>(1 + 1e-4 * u));
    all[4].logits.push_back(static_cast<float>(1e-3 * static_cast<double>(i)));
    all[5].logits.push_back(static_cast<float>(-1e-3 * static_cast<double>(i)));
    all[6].logits.push_back(i % 3 == 0 ? -kInf : static_cast<float>(8 * u - 4));
    all[7].logits.push_back(static_cast<float>(std::exp2(-120 * u)));
  }
  return all;
}

std::vector<size_t> best_first(const std::vector<float>& logits) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  return order;
}

TEST(Candidates, TakesTheBestOfAnyRowInOrder) {
  Candidates candidates(naive_kernels());
  for (const size_t n : {1, 31, 33, 700, 20000})
    for (const NamedRow& row : rows(n)) {
      const std::vector<size_t> order = best_first(row.logits);
      for (const size_t wanted : {1, 2, 50, 2048}) {
        const auto taken = candidates.take_best(row.logits, wanted, -kInf);
        const auto above = static_cast<size_t>(std::ranges::count_if(row.logits, [](float x) { return x > -kInf; }));
        ASSERT_EQ(candidates.size(), std::min(wanted, above)) << row.name << " " << n;
        EXPECT_EQ(taken == Candidates::Taken::All, above <= wanted) << row.name << " " << n;
        for (size_t rank = 0; rank < candidates.size(); ++rank) {
          ASSERT_EQ(candidates.id(rank), static_cast<int32_t>(order[rank])) << row.name << " " << n << " rank " << rank;
          ASSERT_EQ(candidates.logit(rank), row.logits[order[rank]]);
        }
      }
    }
}

TEST(Candidates, TakeNothingAtOrBelowTheBoundAndTellOfANan) {
  Candidates candidates(naive_kernels());
  EXPECT_EQ(candidates.take_best(std::vector<float>{1, 3, 2, 3}, 4, 2), Candidates::Taken::All);
  ASSERT_EQ(candidates.size(), 2);
  EXPECT_EQ(candidates.id(1), 3);
  for (size_t n = 1; n < 70; ++n)
    for (size_t where = 0; where < n; ++where) {
      std::vector<float> row(n, 1);
      row[where] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(candidates.take_best(row, 2, -kInf), Candidates::Taken::Nan) << n << " " << where;
      EXPECT_EQ(argmax(row), std::nullopt) << n << " " << where;
    }
}

TEST(LogitBuckets, AWalkEndsWhereThatOfTheSortedRowDoes) {
  constexpr double kAnyMass = std::numeric_limits<double>::infinity();
  Candidates candidates(naive_kernels());
  LogitBuckets buckets(naive_kernels());
  for (const size_t n : {1, 700, 20000})
    for (const NamedRow& row : rows(n)) {
      const std::vector<size_t> order = best_first(row.logits);
      const LogitWeights weights = {row.logits[order[0]], 1};
      buckets.weigh(row.logits, weights, 0);
      double mass = 0;
      for (size_t rank = 0; rank < n && row.logits[order[rank]] > weights.max - 80; ++rank) {
        mass += std::exp(static_cast<double>(row.logits[order[rank]]) - static_cast<double>(weights.max));
        if (rank % (n / 9 + 1) != 0 && rank + 1 != n) continue;
        const Walk by_count = buckets.walk({rank + 1, kAnyMass}, candidates);
        EXPECT_EQ(by_count.count, rank + 1) << row.name << " " << n;
        EXPECT_EQ(by_count.last, static_cast<int32_t>(order[rank])) << row.name << " " << n << " rank " << rank;
        EXPECT_NEAR(by_count.mass, mass, 1e-6 * mass) << row.name << " " << n;
        const Walk by_mass = buckets.walk({n, by_count.mass}, candidates);
        EXPECT_NEAR(by_mass.mass, by_count.mass, 1e-9 * mass) << row.name << " " << n;
      }
    }
}

TEST(LogitBuckets, AWalkEndsBeforeTheLeastWeight) {
  Candidates candidates(naive_kernels());
  LogitBuckets buckets(naive_kernels());
  const size_t n = 20000;
  for (const NamedRow& row : rows(n))
    for (const double least : {0.9, 0.5, 0.05, 1e-6}) {
      const float max = *std::ranges::max_element(row.logits);
      const auto heavy = static_cast<size_t>(std::ranges::count_if(row.logits, [&](float x) {
        float weight = 0;
        naive_kernels().exp_shifted(&x, 1, max, 1, &weight);
        return static_cast<double>(weight) >= least;
      }));
      for (const double counted : {0.0, least}) {  // whether lighter ones are there at all
        buckets.weigh(row.logits, {max, 1}, counted);
        EXPECT_EQ(buckets.walk({n + 1, std::numeric_limits<double>::infinity(), least}, candidates).count, heavy)
            << row.name << " " << least;
      }
    }
}

}  // namespace
}  // namespace kilin

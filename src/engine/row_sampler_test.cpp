// What is drawn, id by id, against the definition: sort everything, in double.
#include "engine/row_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.h"
#include "core/thread_pool.h"
#include "support/allocations.h"
#include "support/kernels.h"

namespace kilin {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> logits_like(size_t kind, size_t n, uint64_t seed) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const double u = random_uniform(seed, i);
    x[i] = static_cast<float>(kind == 0   ? 10 * u - 5
                              : kind == 1 ? std::floor(6 * u) - 2                      // ties
                              : kind == 2 ? 7.0                                        // nothing but ties
                              : kind == 3 ? (i % 4 != 1 ? -double{kInf} : 10 * u - 5)  // masked
                              : kind == 4 ? -3 * std::log(1 + 1e4 * u)                 // few probable ones, as in a text
                                          : (i == n / 2 ? 3 : 1e-5 * u));              // one beside a crowd
  }
  if (kind == 3) x[n / 2] = 1;
  return x;
}
constexpr size_t kKinds = 6;

// The definition. An id is right if the random number falls on its part of the kept ids' weights, give or take what fp32
// rounds.
class Reference {
 public:
  Reference(const std::vector<float>& logits, const SamplingParams& p) : order_(logits.size()) {
    const bool all = (p.top_k == 0 || p.top_k >= logits.size()) && p.top_p >= 1 && p.min_p <= 0;
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    const double max = double{logits[order_[0]]};
    if (all) std::ranges::sort(order_);  // without a choice of the best, ids are drawn from in their order
    if (!all && p.top_k > 0 && p.top_k < order_.size()) order_.resize(p.top_k);
    for (size_t i : order_) weights_.push_back(std::exp((double{logits[i]} - max) / p.temperature));
    total_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    double mass = 0;
    for (; kept_ < order_.size(); ++kept_) {
      if (!all && (mass >= p.top_p * total_ || weights_[kept_] < p.min_p)) break;
      mass += weights_[kept_];
    }
    mass_ = mass;
    // Where the last kept one is a matter of rounding.
    if (!all && kept_ < order_.size() && std::abs(mass - p.top_p * total_) < kTolerance * total_) slack_ = weights_[kept_];
    if (!all && std::abs(mass - weights_[kept_ - 1] - p.top_p * total_) < kTolerance * total_) slack_ = weights_[kept_ - 1];
  }

  ::testing::AssertionResult accepts(int32_t id, double uniform) const {
    const auto found = std::ranges::find(order_, static_cast<size_t>(id));
    if (found == order_.end()) return ::testing::AssertionFailure() << "id " << id << " is not among the best";
    const auto rank = static_cast<size_t>(found - order_.begin());
    const double before = std::accumulate(weights_.begin(), weights_.begin() + (found - order_.begin()), 0.0);
    const double tolerance = kTolerance * total_ + slack_, target = uniform * mass_;
    if (rank > kept_ || (rank == kept_ && slack_ == 0))
      return ::testing::AssertionFailure() << "rank " << rank << " of " << kept_ << " kept";
    if (target < before - tolerance || target > before + weights_[rank] + tolerance)
      return ::testing::AssertionFailure() << "id " << id << " has " << before << " to " << before + weights_[rank] << " of "
                                           << mass_ << ", drawn was " << target;
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr double kTolerance = 1e-5;
  std::vector<size_t> order_;
  std::vector<double> weights_;
  double total_ = 0;
  double mass_ = 0;
  double slack_ = 0;
  size_t kept_ = 0;
};

const std::vector<SamplingParams> kParams = {
    {.temperature = 1},
    {.temperature = 0.01},
    {.temperature = 1e30},
    {.temperature = 1e300},
    {.temperature = 1, .top_k = 1},
    {.temperature = 1, .top_k = 50, .top_p = 0.95},
    {.temperature = 2, .top_k = 1000, .top_p = 0.8, .min_p = 0.1},
    {.temperature = 2, .top_k = 1000, .min_p = 0.01},
    {.temperature = 1, .top_k = 1000000},
    {.temperature = 1, .top_p = 0.9},
    {.temperature = 5, .top_p = 0.9},
    {.temperature = 1, .top_p = 1e-12},
    {.temperature = 1, .top_p = 0.999999},
    {.temperature = 1e300, .top_p = 0.5},
    {.temperature = 1, .min_p = 0.05},
    {.temperature = 3, .top_p = 0.7, .min_p = 1e-3},
    {.temperature = 1, .min_p = 1},
};

TEST(RowSampler, DrawsTheIdOnWhosePartTheRandomNumberFalls) {
  for (const KernelTable* kernels : {&naive_kernels(), &testing::isa_forms().back().table})
    for (const size_t n : {1, 2, 50, 1000, 9000}) {
      RowSampler sampler(*kernels, n);
      for (size_t kind = 0; kind < kKinds; ++kind) {
        const std::vector<float> logits = logits_like(kind, n, n + kind);
        for (size_t c = 0; c < kParams.size(); ++c) {
          const Reference reference(logits, kParams[c]);
          for (uint64_t position = 0; position < 6; ++position) {
            std::vector<float> row = logits;
            const auto id = sampler.sample({row, &kParams[c], {}, position});
            ASSERT_TRUE(id) << "kind " << kind << " of " << n << ", parameters " << c;
            EXPECT_TRUE(reference.accepts(*id, random_uniform(kParams[c].seed, position)))
                << "kind " << kind << " of " << n << ", parameters " << c << ", position " << position;
          }
        }
      }
    }
}

TEST(RowSampler, TheReferenceRefusesANeighbour) {
  const std::vector<float> logits = {3, 2, 1, 0};
  const Reference reference(logits, {.temperature = 1, .top_k = 3});
  EXPECT_TRUE(reference.accepts(0, 0.1));
  EXPECT_FALSE(reference.accepts(1, 0.1));
  EXPECT_FALSE(reference.accepts(3, 0.999));
}

class Rows {
 public:
  explicit Rows(size_t count) {
    for (size_t r = 0; r < count; ++r) logits_.push_back(logits_like(r % kKinds, kVocab, r));
    for (size_t i = 0; i < 300; ++i) history_.push_back(static_cast<int32_t>(random_bits(5, i) % kVocab));
    params_ = kParams;
    for (size_t r = 0; r < params_.size(); r += 2) params_[r].repetition_penalty = 1.3;
    params_.push_back({});
  }
  std::vector<float>& operator[](size_t r) { return logits_[r]; }

  // Every row as it is at first; the last `id`s are not looked at.
  std::vector<SampleRow> fresh() {
    scratch_ = logits_;
    std::vector<SampleRow> rows;
    for (size_t r = 0; r < logits_.size(); ++r)
      rows.push_back({scratch_[r], &params_[r % params_.size()], std::span(history_).first(r * 7 % 300), r, -7});
    return rows;
  }

  std::vector<std::optional<int32_t>> one_by_one() {
    Sampler sampler(naive_kernels(), kVocab);
    std::vector<std::optional<int32_t>> ids;
    for (const SampleRow& row : fresh()) ids.push_back(sampler.sample(row.logits, *row.params, row.history, row.position));
    return ids;
  }

  static constexpr size_t kVocab = 6000;

 private:
  std::vector<std::vector<float>> logits_, scratch_;
  std::vector<int32_t> history_;
  std::vector<SamplingParams> params_;
};

std::vector<std::optional<int32_t>> ids_of(const std::vector<SampleRow>& rows) {
  std::vector<std::optional<int32_t>> ids;
  for (const SampleRow& row : rows) ids.push_back(row.id);
  return ids;
}

TEST(Sampler, NeitherThreadsNorOtherRowsChangeAnId) {
  Rows all(37);
  const auto truth = all.one_by_one();
  EXPECT_GT(std::ranges::count_if(truth, [](const auto& id) { return id && *id > 0; }), 20);
  for (const size_t threads : {1, 2, 3, 4, 5}) {
    ThreadPool pool(threads);
    Sampler sampler(naive_kernels(), Rows::kVocab, threads);
    for (const size_t together : {1, 2, 5, 37}) {
      std::vector<SampleRow> rows = all.fresh();
      for (size_t begin = 0; begin < rows.size(); begin += together)
        sampler.sample(pool, std::span(rows).subspan(begin, std::min(together, rows.size() - begin)));
      EXPECT_EQ(ids_of(rows), truth) << threads << " threads, " << together << " rows together";
    }
  }
}

TEST(Sampler, ARowOfNoNumberHasNoIdAndItsNeighboursHaveTheirs) {
  Rows all(37);
  auto truth = all.one_by_one();
  for (const size_t r : {1, 4, 5, 9, 14, 17, 31}) {
    all[r][r * 131 % Rows::kVocab] = kNan;
    truth[r] = std::nullopt;
  }
  for (const size_t r : {2, 6, 22, 35}) {
    all[r].assign(Rows::kVocab, -kInf);
    truth[r] = std::nullopt;
  }
  ThreadPool pool(3);
  Sampler sampler(naive_kernels(), Rows::kVocab, 3);
  std::vector<SampleRow> rows = all.fresh();
  sampler.sample(pool, rows);
  EXPECT_EQ(ids_of(rows), truth);
}

TEST(Sampler, ANanAnywhereIsFoundByEveryFormWhateverTheParameters) {
  for (const testing::Form& form : testing::all_forms())
    for (const size_t n : {1, 40, 1100}) {
      Sampler sampler(form.table, n);
      for (const SamplingParams& params : kParams)
        for (const size_t where : {size_t{0}, n / 2, n - 1})
          for (const float others : {1.0f, -kInf, kInf}) {
            std::vector<float> logits(n, others);
            logits[where] = kNan;
            EXPECT_EQ(sampler.sample(logits, params, {}, 3), std::nullopt) << form.name << " " << n << " at " << where;
          }
    }
}

TEST(Sampler, AStepTakesNoMemory) {
  Rows all(37);
  ThreadPool pool(2);
  Sampler sampler(naive_kernels(), Rows::kVocab, 2);
  std::vector<SampleRow> rows = all.fresh();
  const size_t before = testing::allocations();
  sampler.sample(pool, rows);
  EXPECT_EQ(testing::allocations(), before);
}

}  // namespace
}  // namespace kilin

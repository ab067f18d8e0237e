// Attention over blocks, and softmaxes in parts.
#include "kernels/mla.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/compare.h"
#include "support/kernels.h"

namespace kilin {
namespace {

using testing::Form;
using testing::Matrix;
using testing::Random;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One head's queries at positions [past, past + rows) over keys [0, past + rows).
struct Extend {
  Extend(size_t query_rows, size_t past_tokens, size_t nope_dim, size_t rope_dim, size_t value_dim, uint64_t seed)
      : rows(query_rows),
        past(past_tokens),
        keys(rows + past),
        nope(nope_dim),
        rope(rope_dim),
        V(value_dim),
        random(seed),
        q(rows, nope + rope, random, -2, 2),
        k_nope(keys, nope, random, -2, 2),
        k_rope(keys, rope, random, -2, 2),
        v(keys, V, random) {}
  size_t rows, past, keys, nope, rope, V;
  Random random;
  Matrix q, k_nope, k_rope, v;
  float scale() const { return 1 / std::sqrt(static_cast<float>(nope + rope)); }
};

// The normalised result of extend blocks for rows [begin, end). All positions are shifted by `shift`.
std::vector<float> attend(const Form& form, const Extend& in, size_t begin, size_t end, size_t shift = 0) {
  constexpr size_t kStride = 3;
  const size_t rows = end - begin;
  std::vector<float> max(rows * kStride, -kInfinity), sum(rows * kStride, 0.f),
      scratch(mla_extend_scratch(rows, in.nope + in.rope), std::nanf(""));
  Matrix out(rows, in.V);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < in.V; ++c) out.at(r, c) = 0;
  for (size_t first = 0; first < in.past + end; first += kMlaBlock) {
    const size_t last = std::min(first + kMlaBlock, in.keys);
    form.table.mla_extend_block({.q = in.q.view().rows(begin, end),
                                 .k_nope = in.k_nope.view().rows(first, last),
                                 .k_rope = in.k_rope.view().rows(first, last),
                                 .v = in.v.view().rows(first, last),
                                 .scale = in.scale(),
                                 .query_start = shift + in.past + begin,
                                 .key_start = shift + first,
                                 .max = max.data(),
                                 .sum = sum.data(),
                                 .partial_stride = kStride,
                                 .out = out.view()},
                                scratch);
  }
  for (size_t r = 0; r < rows; ++r) form.table.softmax_finish({&max[r * kStride], &sum[r * kStride], out.view().row(r)}, in.V);
  EXPECT_TRUE(out.gaps_are_intact()) << form.name;
  return out.values();
}

std::vector<float> reference(const Extend& in) {
  std::vector<float> out;
  for (size_t r = 0; r < in.rows; ++r) {
    std::vector<double> p;
    double most = -1e300, sum = 0;
    for (size_t s = 0; s <= in.past + r; ++s) {
      double score = 0;
      for (size_t d = 0; d < in.nope; ++d)
        score += static_cast<double>(in.q.at(r, d)) * static_cast<double>(in.k_nope.at(s, d));
      for (size_t d = 0; d < in.rope; ++d)
        score += static_cast<double>(in.q.at(r, in.nope + d)) * static_cast<double>(in.k_rope.at(s, d));
      p.push_back(score * static_cast<double>(in.scale()));
      most = std::max(most, p.back());
    }
    for (double& x : p) sum += x = std::exp(x - most);
    for (size_t c = 0; c < in.V; ++c) {
      double value = 0;
      for (size_t s = 0; s < p.size(); ++s) value += p[s] * static_cast<double>(in.v.at(s, c));
      out.push_back(static_cast<float>(value / sum));
    }
  }
  return out;
}

TEST(MlaExtendBlock, AgreesWithDoubleOverOneAndSeveralBlocks) {
  for (const Extend& in :
       {Extend(1, 0, 5, 3, 7, 1), Extend(9, 0, 32, 16, 32, 2), Extend(40, 3, 17, 4, 33, 3), Extend(70, 0, 16, 1, 16, 4),
        Extend(33, 500, 32, 16, 20, 5), Extend(20, 1017, 8, 8, 40, 6), Extend(2, 511, 12, 4, 1, 7)}) {
    const std::vector<float> expected = reference(in);
    for (const Form& form : testing::all_forms())
      EXPECT_CLOSE_TO_MAX(attend(form, in, 0, in.rows), expected, 3e-6)
          << form.name << " rows " << in.rows << " past " << in.past;
  }
}

TEST(MlaExtendBlock, RowsAloneTogetherOrInAnyCutGiveTheSameBytes) {
  const Extend in(70, 480, 20, 5, 37, 8);
  for (const Form& form : testing::all_forms()) {
    const std::vector<float> whole = attend(form, in, 0, in.rows);
    for (size_t part : {1, 5, 16, 17, 64}) {
      std::vector<float> parts;
      for (size_t r = 0; r < in.rows; r += part) {
        const std::vector<float> out = attend(form, in, r, std::min(r + part, in.rows));
        parts.insert(parts.end(), out.begin(), out.end());
      }
      EXPECT_BYTES_EQ(parts, whole) << form.name << " by " << part;
    }
  }
}

TEST(MlaExtendBlock, PositionsShiftedByMultiplesOf512GiveTheSameBytes) {
  const Extend in(70, 480, 20, 5, 37, 11);  // two blocks; in the second some rows see all keys, some a few, some none
  for (const Form& form : testing::all_forms()) {
    const std::vector<float> at_zero = attend(form, in, 0, in.rows);
    for (size_t shift : {kMlaBlock, 7 * kMlaBlock, (size_t{1} << 20) - kMlaBlock, size_t{1} << 32, size_t{1} << 53})
      EXPECT_BYTES_EQ(attend(form, in, 0, in.rows, shift), at_zero) << form.name << " by " << shift;
  }
}

TEST(MlaExtendBlock, RowsThatSeeNoKeyOfTheBlockAreLeftAlone) {
  const Extend in(20, 500, 8, 4, 9, 9);
  for (const Form& form : testing::all_forms()) {
    std::vector<float> max(20, 3.f), sum(20, 4.f), scratch(mla_extend_scratch(20, 12), std::nanf(""));
    Matrix out(20, 9);
    for (size_t r = 0; r < 20; ++r)
      for (size_t c = 0; c < 9; ++c) out.at(r, c) = 5;
    form.table.mla_extend_block({.q = in.q.view(),
                                 .k_nope = in.k_nope.view().rows(512, 520),
                                 .k_rope = in.k_rope.view().rows(512, 520),
                                 .v = in.v.view().rows(512, 520),
                                 .scale = 1,
                                 .query_start = 500,
                                 .key_start = 512,
                                 .max = max.data(),
                                 .sum = sum.data(),
                                 .partial_stride = 1,
                                 .out = out.view()},
                                scratch);
    for (size_t r = 0; r < 20; ++r) {
      EXPECT_EQ(sum[r] == 4.f, r < 12) << form.name << " row " << r;
      for (size_t c = 0; c < 9; ++c) EXPECT_EQ(out.at(r, c) == 5.f, r < 12) << form.name << " row " << r;
      if (r < 12) {
        EXPECT_EQ(max[r], 3.f) << form.name << " row " << r;
      }
    }
  }
}

TEST(MlaExtendBlock, AKeyThatIsNotANumberSpoilsNoRowBeforeIt) {
  Extend in(40, 0, 16, 8, 24, 10);
  Extend poisoned = in;
  constexpr size_t kKey = 21;
  poisoned.k_nope.at(kKey, 2) = std::nanf("");
  poisoned.v.at(kKey, 1) = kInfinity;
  for (const Form& form : testing::all_forms()) {
    std::vector<float> clean = attend(form, in, 0, in.rows), spoilt = attend(form, poisoned, 0, in.rows);
    EXPECT_TRUE(std::isnan(spoilt[kKey * in.V])) << form.name;
    clean.resize(kKey * in.V), spoilt.resize(kKey * in.V);
    EXPECT_BYTES_EQ(spoilt, clean) << form.name;
  }
}

TEST(SoftmaxMerge, OfTwoPartsIsTheWholeAndTheEmptyPartIsNeutral) {
  for (const Form& form : testing::all_forms())
    for (size_t n : {1, 3, 16, 21}) {
      Random random(n);
      std::vector<float> a = random.vector(n), b = random.vector(n);
      const std::vector<float> a_before = a;
      float a_max = 2, a_sum = 3, b_max = 5, b_sum = 1.5f;
      float empty_max = -kInfinity, empty_sum = 0;
      std::vector<float> empty(n, 0.f);
      form.table.softmax_merge({&empty_max, &empty_sum, empty.data()}, {&a_max, &a_sum, a.data()}, n);
      EXPECT_BYTES_EQ(a, a_before) << form.name;
      form.table.softmax_merge({&a_max, &a_sum, a.data()}, {&empty_max, &empty_sum, empty.data()}, n);
      EXPECT_EQ(empty, a_before) << form.name;
      EXPECT_EQ(empty_max, 2) << form.name;
      EXPECT_EQ(empty_sum, 3) << form.name;

      form.table.softmax_merge({&b_max, &b_sum, b.data()}, {&a_max, &a_sum, a.data()}, n);
      const double keep = std::exp(-3.0);
      EXPECT_EQ(a_max, 5) << form.name;
      EXPECT_NEAR(a_sum, 3 * keep + 1.5, 1e-6) << form.name;
      for (size_t i = 0; i < n; ++i)
        EXPECT_NEAR(a[i], static_cast<double>(a_before[i]) * keep + static_cast<double>(b[i]), 1e-6) << form.name;
    }
}

TEST(SoftmaxFinish, DividesAndLeavesTheEmptyPartZero) {
  for (const Form& form : testing::all_forms()) {
    std::vector<float> x = {2, 4, 6, 8, 10, 12, 14};
    float max = 1, sum = 2;
    form.table.softmax_finish({&max, &sum, x.data()}, x.size());
    EXPECT_EQ(x, (std::vector<float>{1, 2, 3, 4, 5, 6, 7})) << form.name;
    std::vector<float> zeros(7, 0.f);
    max = -kInfinity, sum = 0;
    form.table.softmax_finish({&max, &sum, zeros.data()}, zeros.size());
    EXPECT_EQ(zeros, std::vector<float>(7, 0.f)) << form.name;
  }
}

}  // namespace
}  // namespace kilin

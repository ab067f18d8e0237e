// Elementwise ops, norms and the convolution: every instruction set against the naive form, for all lengths around the vectors'
// widths, on rows that are not aligned.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "support/compare.h"
#include "support/kernels.h"

namespace kilin {
namespace {

using testing::Form;
using testing::Matrix;
using testing::Random;

constexpr double kTolerance = 1e-6;

// Runs `op` of every form on equal inputs and compares its output with the naive form's.
void expect_like_naive(size_t rows, size_t cols, uint64_t seed, double tolerance,
                       const std::function<void(const KernelTable&, Random&, Matrix&)>& op) {
  Random naive_random(seed);
  Matrix expected(rows, cols, naive_random);
  op(naive_kernels(), naive_random, expected);
  for (const Form& form : testing::isa_forms()) {
    Random random(seed);
    Matrix actual(rows, cols, random);
    op(form.table, random, actual);
    if (tolerance == 0)
      EXPECT_BYTES_EQ(actual.values(), expected.values()) << form.name << " " << rows << " x " << cols;
    else
      EXPECT_CLOSE_TO_MAX(actual.values(), expected.values(), tolerance) << form.name << " " << rows << " x " << cols;
    EXPECT_TRUE(actual.gaps_are_intact()) << form.name << " " << rows << " x " << cols;
  }
}

TEST(Elementwise, AddIsTheNaiveFormBitForBit) {
  for (size_t n = 0; n <= 70; ++n)
    expect_like_naive(3, n, n, 0, [&](const KernelTable& table, Random& random, Matrix& out) {
      table.add(Matrix(3, n, random).view(), out.view());
    });
}

TEST(Elementwise, AddScaledAgreesWithTheNaiveForm) {
  for (size_t n = 0; n <= 70; ++n)
    expect_like_naive(1, n, n, kTolerance, [&](const KernelTable& table, Random& random, Matrix& out) {
      const std::vector<float> x = random.vector(n);
      table.add_scaled(x.data(), 0.37f, n, out.view().data());
    });
}

TEST(Elementwise, RoundToBf16IsTheNaiveFormBitForBitAlsoForTiesNansAndExtremes) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> special = {0.f,   -0.f, inf, -inf, std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                                1e-42f};
  for (uint32_t bits : {0x3f808000u, 0x3f818000u, 0x3f808001u, 0x3f807fffu, 0x7fc00001u, 0x7f800001u, 0xffbfffffu, 0x7f7fffffu})
    special.push_back(std::bit_cast<float>(bits));
  for (size_t n = 0; n <= 70; ++n)
    expect_like_naive(2, n, n, 0, [&](const KernelTable& table, Random&, Matrix& out) {
      for (size_t i = 0; i < n; i += 3) out.at(1, i) = special[i % special.size()];
      constexpr bf16 kMark = {0x1234};
      std::vector<bf16> rounded(2 * (n + 1) + 1, kMark);  // rows at odd places, each with a gap after it
      table.round_to_bf16(out.view(), {rounded.data() + 1, 2, n, n + 1});
      for (size_t r = 0; r < 2; ++r) {
        EXPECT_EQ(rounded[r * (n + 1)].bits, kMark.bits);
        for (size_t i = 0; i < n; ++i) out.at(r, i) = to_float(rounded[1 + r * (n + 1) + i]);
      }
      EXPECT_EQ(rounded.back().bits, kMark.bits);
    });
}

TEST(Elementwise, SiluMulAgreesWithTheNaiveFormAlsoInPlace) {
  for (size_t n = 0; n <= 70; ++n) {
    expect_like_naive(2, n, n, kTolerance, [&](const KernelTable& table, Random& random, Matrix& out) {
      const Matrix gate(2, n, random, -12, 12), up(2, n, random);
      table.silu_mul(gate.view(), up.view(), out.view());
    });
    expect_like_naive(2, n, n, kTolerance, [&](const KernelTable& table, Random& random, Matrix& out) {
      table.silu_mul(Matrix(2, n, random, -12, 12).view(), out.view(), out.view());
    });
  }
}

TEST(Elementwise, SigmoidAgreesWithTheNaiveForm) {
  for (size_t n = 0; n <= 70; ++n)
    expect_like_naive(2, n, n, kTolerance, [&](const KernelTable& table, Random& random, Matrix& out) {
      table.sigmoid(Matrix(2, n, random, -30, 30).view(), out.view());
      table.sigmoid(out.view(), out.view());
    });
}

TEST(Elementwise, ExpShiftedAgreesWithTheNaiveForm) {
  for (size_t n = 1; n <= 70; ++n)
    expect_like_naive(1, n, n, kTolerance, [&](const KernelTable& table, Random& random, Matrix& out) {
      const std::vector<float> x = random.vector(n, -8, 3);
      table.exp_shifted(x.data(), n, 3, 1.7f, out.view().data());
    });
}

TEST(MaxAndExpSum, AgreesWithDoubleForEveryForm) {
  for (size_t n : {1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 63, 70, 1023, 1024, 1025, 163840}) {
    Random random(n);
    const std::vector<float> x = random.vector(n, -30, -1);  // below 0: a masked lane must not win
    const float most = *std::max_element(x.begin(), x.end());
    double expected = 0;
    for (float value : x) expected += std::exp((static_cast<double>(value) - static_cast<double>(most)) * 0.8);
    for (const Form& form : testing::all_forms()) {
      float max = 0;
      double sum = 0;
      form.table.max_and_exp_sum(x.data(), n, 0.8f, max, sum);
      EXPECT_EQ(max, most) << form.name << " " << n;
      EXPECT_NEAR(sum / expected, 1, 1e-6) << form.name << " " << n;
    }
  }
}

TEST(KdaGate, AgreesWithTheNaiveFormForAnyHeadDim) {
  for (size_t K : {1, 3, 4, 7, 8, 15, 16, 17, 32, 48, 70, 128})
    expect_like_naive(4, 3 * K, K, kTolerance, [&](const KernelTable& table, Random& random, Matrix& g) {
      const std::vector<float> A_log = random.vector(3, -2, 3), dt_bias = random.vector(3 * K, -6, 2);
      Matrix f(4, 3 * K, random, -25, 25);
      table.kda_gate(f.view(), A_log.data(), dt_bias.data(), K, g.view());
      table.kda_gate(f.view(), A_log.data(), dt_bias.data(), K, f.view());
      EXPECT_BYTES_EQ(f.values(), g.values()) << "in place";
    });
}

TEST(KdaGate, KeepsTheRelativeSizeOfTinyDecays) {
  const float A_log = 0, dt_bias = 0, f = -40;
  for (const Form& form : testing::all_forms()) {
    float g = 0;
    form.table.kda_gate({&f, 1, 1}, &A_log, &dt_bias, 1, {&g, 1, 1});
    EXPECT_NEAR(static_cast<double>(g) / -std::exp(-40.0), 1, 1e-6) << form.name;  // not log(1 + 0)
  }
}

TEST(Norms, AgreeWithTheNaiveFormsForAllLengths) {
  for (size_t n = 1; n <= 70; ++n) {
    expect_like_naive(3, n, n, kTolerance, [&](const KernelTable& table, Random& random, Matrix& out) {
      const std::vector<float> weight = random.vector(n, 0.5f, 2);
      table.rms_norm(Matrix(3, n, random, -3, 5).view(), weight.data(), 1e-5f, out.view());
    });
    expect_like_naive(3, 2 * n, n, kTolerance, [&](const KernelTable& table, Random& random, Matrix& out) {
      const std::vector<float> weight = random.vector(n, 0.5f, 2);
      table.gated_rms_norm(out.view(), weight.data(), Matrix(3, 2 * n, random, -9, 9).view(), n, 1e-5f);
    });
    expect_like_naive(3, 2 * n, n, kTolerance,
                      [&](const KernelTable& table, Random&, Matrix& out) { table.l2_norm(out.view(), n, 0.25f); });
  }
}

TEST(Norms, InPlaceGivesTheSameBytes) {
  Random random(7);
  const Matrix x(5, 67, random);
  const std::vector<float> weight = random.vector(67);
  for (const Form& form : testing::all_forms()) {
    Matrix apart(5, 67), same = x;
    form.table.rms_norm(x.view(), weight.data(), 1e-6f, apart.view());
    form.table.rms_norm(same.view(), weight.data(), 1e-6f, same.view());
    EXPECT_BYTES_EQ(apart.values(), same.values()) << form.name;
  }
}

TEST(Norms, OfRowsOfZerosAreZero) {
  for (const Form& form : testing::all_forms()) {
    std::vector<float> x(40, 0.f);
    form.table.l2_norm({x.data(), 2, 20}, 20, 1);
    EXPECT_EQ(x, std::vector<float>(40, 0.f)) << form.name;
  }
}

TEST(CausalConvSilu, AgreesWithTheNaiveFormAndLeavesTheSameTail) {
  for (size_t width : {1, 2, 4, 7, 16})
    for (size_t channels : {1, 3, 8, 17, 64, 70})
      for (size_t tokens : {1, 2, 3, 4, 5, 18}) {
        Matrix tail_of_naive(width - 1, channels);
        expect_like_naive(tokens, channels, width * 100 + tokens, kTolerance,
                          [&](const KernelTable& table, Random& random, Matrix& out) {
                            const Matrix x(tokens, channels, random), weight(width, channels, random);
                            Matrix tail(width - 1, channels, random);
                            table.causal_conv_silu(x.view(), weight.view(), tail.view(), out.view());
                            EXPECT_TRUE(tail.gaps_are_intact());
                            if (&table == &naive_kernels()) tail_of_naive = tail;
                            EXPECT_BYTES_EQ(tail.values(), tail_of_naive.values());
                          });
      }
}

TEST(CausalConvSilu, CutAnywhereChangesNoByte) {
  constexpr size_t kTokens = 11, kChannels = 21, kWidth = 4;
  for (const Form& form : testing::all_forms())
    for (size_t cut = 0; cut <= kTokens; ++cut) {
      Random random(3);
      const Matrix x(kTokens, kChannels, random), weight(kWidth, kChannels, random);
      Matrix tail(kWidth - 1, kChannels, random), tail_in_two = tail, whole(kTokens, kChannels), in_two = whole;
      form.table.causal_conv_silu(x.view(), weight.view(), tail.view(), whole.view());
      form.table.causal_conv_silu(x.view().rows(0, cut), weight.view(), tail_in_two.view(), in_two.view().rows(0, cut));
      form.table.causal_conv_silu(x.view().rows(cut, kTokens), weight.view(), tail_in_two.view(),
                                  in_two.view().rows(cut, kTokens));
      EXPECT_BYTES_EQ(in_two.values(), whole.values()) << form.name << " cut at " << cut;
      EXPECT_BYTES_EQ(tail_in_two.values(), tail.values()) << form.name << " cut at " << cut;
    }
}

}  // namespace
}  // namespace kilin

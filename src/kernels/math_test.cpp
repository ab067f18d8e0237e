// generic/math.inl against libm in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/float_mode.h"
#include "support/compare.h"
#include "support/kernels.h"

namespace kilin {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Function = void (*)(const float*, size_t, float*);

// The distance in ulps of fp32 at `truth`. A result below the normal range may be flushed to zero, so any value in that range
// counts as right.
double ulps(float value, double truth) {
  constexpr double kSmallestNormal = std::numeric_limits<float>::min();
  const double distance = std::fabs(static_cast<double>(value) - truth);
  if (std::fabs(truth) < kSmallestNormal) return distance / kSmallestNormal;
  return distance / (std::exp2(std::floor(std::log2(std::fabs(truth)))) * 0x1p-23);
}

// Every 499th float between low and high (they have the same sign), and the ends.
std::vector<float> sweep(float low, float high, uint32_t step = 499) {
  std::vector<float> values = {low, high};
  const uint32_t a = std::bit_cast<uint32_t>(low), b = std::bit_cast<uint32_t>(high);
  for (uint32_t bits = std::min(a, b); bits < std::max(a, b) - step; bits += step) values.push_back(std::bit_cast<float>(bits));
  return values;
}

struct Worst {
  double ulps = 0;
  float at = 0;
};

template <typename Truth>
Worst worst_of(Function function, const std::vector<float>& x, Truth truth) {
  std::vector<float> out(x.size());
  function(x.data(), x.size(), out.data());
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double distance = ulps(out[i], truth(static_cast<double>(x[i])));
    if (!(distance <= worst.ulps)) worst = {distance, x[i]};
  }
  return worst;
}

std::vector<float> apply(Function function, std::vector<float> x) {
  std::vector<float> out(x.size());
  function(x.data(), x.size(), out.data());
  return out;
}

double softplus_of(double y) { return std::max(y, 0.) + std::log1p(std::exp(-std::fabs(y))); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<Isa> isas() {
  std::vector<Isa> here;
  for (Isa isa : {Isa::Scalar, Isa::Avx2, Isa::Avx512})
    if (supports(CpuInfo::detect(), isa) && math_of(isa)) here.push_back(isa);
  return here;
}

TEST(Math, UlpsCanFail) {
  EXPECT_EQ(ulps(1.f, 1.0), 0);
  EXPECT_EQ(ulps(std::nextafter(1.f, 2.f), 1.0), 1);
  EXPECT_GT(ulps(0.f, 1.0), 1e6);
  EXPECT_FALSE(ulps(std::nanf(""), 1.0) <= 1e9);
}

TEST(Math, ExpIsWithinTwoUlpsOfLibmInDouble) {
  for (Isa isa : isas())
    for (const auto& x : {sweep(0x1p-30f, 88.72283f), sweep(-0x1p-30f, -103.9f)}) {
      const Worst worst = worst_of(math_of(isa)->exp, x, [](double v) { return std::exp(v); });
      EXPECT_LE(worst.ulps, 2) << to_string(isa) << " at " << worst.at;
    }
}

TEST(Math, ExpOfMinusAnythingNeverExceedsOne) {
  for (Isa isa : isas())
    for (float y : apply(math_of(isa)->exp, sweep(-0x1p-40f, -104.f))) ASSERT_TRUE(y >= 0 && y <= 1) << to_string(isa);
}

TEST(Math, SoftplusIsWithinThreeUlpsOfLibmInDouble) {
  for (Isa isa : isas())
    for (const auto& x : {sweep(0x1p-30f, 1e6f), sweep(-0x1p-30f, -87.f)}) {
      const Worst worst = worst_of(math_of(isa)->softplus, x, softplus_of);
      EXPECT_LE(worst.ulps, 3) << to_string(isa) << " at " << worst.at;
    }
}

TEST(Math, SigmoidIsWithinThreeUlpsOfLibmInDouble) {
  for (Isa isa : isas())
    for (const auto& x : {sweep(0x1p-30f, 200.f), sweep(-0x1p-30f, -200.f)}) {
      const Worst worst = worst_of(math_of(isa)->sigmoid, x, sigmoid_of);
      EXPECT_LE(worst.ulps, 3) << to_string(isa) << " at " << worst.at;
    }
}

TEST(Math, ExtremesAreThoseOfTheMathematics) {
  const float huge = std::numeric_limits<float>::max();
  for (Isa isa : isas()) {
    const MathTable& math = *math_of(isa);
    EXPECT_EQ(apply(math.exp, {0.f, -0.f, -kInfinity, -huge, -976.f, kInfinity, huge, 89.f}),
              (std::vector<float>{1, 1, 0, 0, 0, kInfinity, kInfinity, kInfinity}))
        << to_string(isa);
    EXPECT_EQ(apply(math.softplus, {-kInfinity, -huge, -500.f, kInfinity, huge, 500.f}),
              (std::vector<float>{0, 0, 0, kInfinity, huge, 500}))
        << to_string(isa);
    EXPECT_EQ(apply(math.sigmoid, {-kInfinity, -huge, kInfinity, huge, 0.f}), (std::vector<float>{0, 0, 1, 1, 0.5f}))
        << to_string(isa);
    for (Function function : {math.exp, math.softplus, math.sigmoid}) {
      const std::vector<float> out = apply(function, {std::nanf(""), 1.f});
      EXPECT_TRUE(std::isnan(out[0]) && !std::isnan(out[1])) << to_string(isa);
    }
  }
}

TEST(Math, FlushingSubnormalsChangesNoNormalResult) {
  const std::vector<float> x = sweep(-0x1p-30f, -110.f, 9973);
  for (Isa isa : isas())
    for (Function function : {math_of(isa)->exp, math_of(isa)->softplus, math_of(isa)->sigmoid}) {
      const std::vector<float> plain = apply(function, x);
      std::vector<float> flushed;
      {
        const FloatModeGuard flush;
        flushed = apply(function, x);
      }
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(flushed[i], std::fpclassify(plain[i]) == FP_SUBNORMAL ? 0 : plain[i]) << to_string(isa) << " at " << x[i];
    }
}

TEST(Math, AResultDoesNotDependOnItsLane) {
  testing::Random random(1);
  const std::vector<float> x = random.vector(97, -20, 20);
  for (Isa isa : isas())
    for (Function function : {math_of(isa)->exp, math_of(isa)->softplus, math_of(isa)->sigmoid}) {
      const std::vector<float> all = apply(function, x);
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_BYTES_EQ(apply(function, {x[i]}), std::vector<float>{all[i]}) << to_string(isa);
    }
}

}  // namespace
}  // namespace kilin

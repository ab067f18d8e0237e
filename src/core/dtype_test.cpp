#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

namespace kilin {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

// The value of a half by the definition of IEEE 754, in double arithmetic.
double value_of_half(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  double magnitude = 0;
  if (exponent == 0)
    magnitude = std::ldexp(mantissa, -24);
  else if (exponent == 0x1f)
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else
    magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(DType, HasASizeAndANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_GE(size_of(dtype), 1u) << i;
    EXPECT_TRUE(names.insert(to_string(dtype)).second) << to_string(dtype);
  }
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::i64), 8u);
  EXPECT_EQ(size_of(DType::boolean), 1u);
  EXPECT_EQ(to_string(DType::bf16), "bf16");
  EXPECT_FALSE(names.contains("?"));
}

TEST(F16, EveryHalfHasItsValueAndComesBackFromFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const f16 half{static_cast<uint16_t>(bits)};
    const double truth = value_of_half(half.bits);
    const float x = to_float(half);
    if (std::isnan(truth)) {
      ASSERT_TRUE(std::isnan(x)) << bits;
      ASSERT_TRUE(std::isnan(to_float(to_f16(x)))) << bits;
      continue;
    }
    ASSERT_EQ(double{x}, truth) << bits;
    ASSERT_EQ(std::signbit(x), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(to_f16(x).bits, half.bits);
  }
}

TEST(F16, RoundsToNearestWithTiesToEvenBetweenAllNeighbours) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {  // up to the largest finite half
    const auto next = static_cast<uint16_t>(bits + 1);
    const float low = to_float(f16{bits}), high = to_float(f16{next});
    const float middle = low + (high - low) / 2;  // exact: a float has 13 bits more
    const uint16_t even = bits % 2 == 0 ? bits : next;
    ASSERT_EQ(to_f16(middle).bits, even);
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(to_f16(std::nextafter(middle, kInfinity)).bits, next);
    ASSERT_EQ(to_f16(-middle).bits, even | 0x8000);
  }
}

TEST(F16, OverflowsToInfinityFromTheMiddleBeyondTheLargest) {
  EXPECT_EQ(to_f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(to_f16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(-65520.0f).bits, 0xfc00);
  EXPECT_EQ(to_f16(kInfinity).bits, 0x7c00);
  EXPECT_EQ(to_f16(-std::numeric_limits<float>::max()).bits, 0xfc00);
  EXPECT_TRUE(std::isnan(to_float(to_f16(kNan))));
}

TEST(F16, KeepsTheSignOfWhatIsTooSmall) {
  EXPECT_EQ(to_f16(0x1p-26f).bits, 0x0000);
  EXPECT_EQ(to_f16(-0x1p-26f).bits, 0x8000);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
  EXPECT_EQ(to_f16(-0.0f).bits, 0x8000);
}

TEST(Bf16, EveryBf16ComesBackFromFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 x{static_cast<uint16_t>(bits)};
    const float value = to_float(x);
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(to_float(to_bf16(value)))) << bits;
    else
      ASSERT_EQ(to_bf16(value).bits, x.bits);
  }
}

TEST(Bf16, RoundsToNearestWithTiesToEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {  // subnormals too; beyond the largest lies infinity
    const uint32_t middle = bits << 16 | 0x8000;
    ASSERT_EQ(to_bf16(std::bit_cast<float>(middle)).bits, bits + bits % 2);
    ASSERT_EQ(to_bf16(std::bit_cast<float>(middle - 1)).bits, bits);
    ASSERT_EQ(to_bf16(std::bit_cast<float>(middle + 1)).bits, bits + 1);
    ASSERT_EQ(to_bf16(std::bit_cast<float>(middle | 0x80000000u)).bits, (bits + bits % 2) | 0x8000);
  }
}

TEST(Bf16, ANanStaysOneWhateverItsPayload) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    const float x = to_float(to_bf16(std::bit_cast<float>(bits)));
    EXPECT_TRUE(std::isnan(x)) << bits;
    EXPECT_EQ(std::signbit(x), bits >> 31 == 1) << bits;
  }
  EXPECT_EQ(to_bf16(kInfinity).bits, 0x7f80);
  EXPECT_EQ(to_bf16(-kInfinity).bits, 0xff80);
}

}  // namespace
}  // namespace kilin

#include "core/saturating.h"

#include <gtest/gtest.h>

namespace kilin {
namespace {

constexpr size_t kHalf = size_t{1} << (sizeof(size_t) * 4);  // its square is the first number that does not fit

TEST(Saturating, ResultsThatFitAreExact) {
  EXPECT_EQ(saturating_sum(3, 4), 7u);
  EXPECT_EQ(saturating_sum(SIZE_MAX - 1, 1), SIZE_MAX);
  EXPECT_EQ(saturating_product(3, 4), 12u);
  EXPECT_EQ(saturating_product(2, 3, 5, 7), 210u);
  EXPECT_EQ(saturating_product(kHalf, kHalf - 1), kHalf * (kHalf - 1));
}

TEST(Saturating, ResultsThatDoNotFitAreTheLargestNumber) {
  EXPECT_EQ(saturating_sum(SIZE_MAX, 1), SIZE_MAX);
  EXPECT_EQ(saturating_sum(1, SIZE_MAX), SIZE_MAX);
  EXPECT_EQ(saturating_product(kHalf, kHalf), SIZE_MAX);
  EXPECT_EQ(saturating_product(SIZE_MAX, SIZE_MAX, 2), SIZE_MAX);
  EXPECT_EQ(saturating_product(2, kHalf, kHalf), SIZE_MAX);
}

TEST(Saturating, AFactorOfZeroMakesZeroWhereverItStands) {
  EXPECT_EQ(saturating_product(0, SIZE_MAX), 0u);
  EXPECT_EQ(saturating_product(kHalf, kHalf, 0), 0u);
}

}  // namespace
}  // namespace kilin

#include "support/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kilin::testing {
namespace {

using Floats = std::vector<float>;

TEST(CloseToMax, PassesWithinTheToleranceAndFailsBeyond) {
  const Floats truth = {1.0f, -4.0f, 2.0f};
  EXPECT_TRUE(close_to_max(Floats{1.0f, -4.0f, 2.0f}, truth, 0));
  EXPECT_TRUE(close_to_max(Floats{1.0f, -4.0f, 2.03f}, truth, 0.01));   // 0.03 / 4
  EXPECT_FALSE(close_to_max(Floats{1.0f, -4.0f, 2.05f}, truth, 0.01));  // 0.05 / 4
}

TEST(CloseToMax, FailsOnNanInfinityAndOtherSizes) {
  const Floats truth = {1.0f, 2.0f};
  EXPECT_FALSE(close_to_max(Floats{std::nanf(""), 2.0f}, truth, 1e9));
  EXPECT_FALSE(close_to_max(Floats{std::numeric_limits<float>::infinity(), 2.0f}, truth, 1e9));
  EXPECT_FALSE(close_to_max(Floats{1.0f}, truth, 1e9));
  EXPECT_FALSE(close_to_max(Floats{1e-30f}, Floats{0.0f}, 1e9));
}

TEST(EachClose, FailsWhereASmallElementErrsThatTheLargestWouldHide) {
  const Floats truth = {0.001f, -4.0f};
  EXPECT_TRUE(each_close(Floats{0.0011f, -4.03f}, truth, 1e-3, 1e-2));
  EXPECT_FALSE(each_close(Floats{0.003f, -4.0f}, truth, 1e-3, 1e-2));
  EXPECT_FALSE(each_close(Floats{0.001f, -4.05f}, truth, 1e-3, 1e-2));
  EXPECT_FALSE(each_close(Floats{std::nanf(""), -4.0f}, truth, 1e9, 1e9));
  EXPECT_FALSE(each_close(Floats{0.001f}, truth, 1e9, 1e9));
}

TEST(SameBytes, SeesOneBitTheSignOfZeroAndTheSize) {
  EXPECT_TRUE(same_bytes_of(Floats{1.0f, 0.0f}, Floats{1.0f, 0.0f}));
  EXPECT_FALSE(same_bytes_of(Floats{1.0f}, Floats{std::nextafter(1.0f, 2.0f)}));
  EXPECT_FALSE(same_bytes_of(Floats{0.0f}, Floats{-0.0f}));
  EXPECT_FALSE(same_bytes_of(Floats{0.0f}, Floats{0.0f, 0.0f}));
}

}  // namespace
}  // namespace kilin::testing

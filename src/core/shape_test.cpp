#include "core/shape.h"

#include <gtest/gtest.h>

#include <vector>

namespace kilin {
namespace {

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape{}.elements(), 1u);
  EXPECT_EQ(Shape{}.rank(), 0u);
  EXPECT_EQ((Shape{4096, 1, 4}).elements(), 16384u);
  EXPECT_EQ((Shape{3, 0, 5}).elements(), 0u);
  EXPECT_EQ((Shape{1u << 31, 1u << 31}).elements(), size_t{1} << 62);
}

TEST(Shape, EqualsOnlyTheSameRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), Shape(std::vector<size_t>{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_NE((Shape{}), (Shape{0}));
}

TEST(Shape, ReadsAsAList) {
  EXPECT_EQ(to_string(Shape{4096, 1, 4}), "[4096, 1, 4]");
  EXPECT_EQ(to_string(Shape{7}), "[7]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

}  // namespace
}  // namespace kilin

#include "core/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kilin {
namespace {

TEST(Tensor, IsZeroedAlignedAndOfItsSize) {
  for (size_t n : {size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{1000}}) {
    const Tensor t(DType::bf16, {3, n});
    EXPECT_EQ(t.bytes(), 6 * n);
    EXPECT_EQ(t.elements(), 3 * n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
    EXPECT_TRUE(std::all_of(t.data(), t.data() + t.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(Tensor, MayHoldNoElements) {
  const Tensor t(DType::f32, {0, SIZE_MAX});
  EXPECT_EQ(t.bytes(), 0u);
  EXPECT_FALSE(t.empty());
  EXPECT_TRUE(Tensor().empty());
}

TEST(Tensor, RefusesASizeThatOverflows) {
  for (const Shape& shape : {Shape{SIZE_MAX, 2}, Shape{SIZE_MAX}, Shape{SIZE_MAX / 4}, Shape{1u << 31, 1u << 31, 4, 1}}) {
    try {
      const Tensor t(DType::f32, shape);
      ADD_FAILURE() << to_string(shape);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted);
      EXPECT_NE(std::string(error.what()).find(to_string(shape)), std::string::npos) << error.what();
    }
  }
}

TEST(Tensor, GivesItsElementsAwayWhenMoved) {
  Tensor a(DType::i32, {4});
  a.as<int32_t>()[3] = 7;
  const int32_t* data = a.as<int32_t>();
  const Tensor b = std::move(a);
  EXPECT_TRUE(a.empty());  // moved from: nothing is left
  EXPECT_EQ(b.as<int32_t>(), data);
  EXPECT_EQ(b.as<int32_t>()[3], 7);
}

TEST(TensorView, IsRowMajorUnlessStridesAreGiven) {
  std::vector<float> data(24);
  const TensorView view(data.data(), DType::f32, {2, 3, 4});
  EXPECT_EQ(view.stride(0), 12u);
  EXPECT_EQ(view.stride(1), 4u);
  EXPECT_EQ(view.stride(2), 1u);
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_FALSE(TensorView(data.data(), DType::f32, {2, 3}, {8, 1, 0, 0}).is_contiguous());
  EXPECT_FALSE(TensorView(data.data(), DType::f32, {3, 2}, {1, 3, 0, 0}).is_contiguous());
  EXPECT_TRUE(TensorView(data.data(), DType::f32, {1, 3}, {99, 1, 0, 0}).is_contiguous()) << "one row has no stride";
}

TEST(TensorView, OfAMatrixKeepsItsStride) {
  std::vector<float> data(12);
  const MatView<float> whole(data.data(), 3, 4);
  const TensorView view = TensorView::of(whole.columns(1, 3));
  EXPECT_EQ(view.shape(), (Shape{3, 2}));
  EXPECT_EQ(view.stride(0), 4u);
  EXPECT_EQ(view.as<float>(), data.data() + 1);
  EXPECT_FALSE(view.is_contiguous());
}

TEST(TensorView, RowsAreAViewOfTheSameElements) {
  std::vector<float> data(24);
  std::iota(data.begin(), data.end(), 0.0f);
  const TensorView view = TensorView(data.data(), DType::f32, {4, 3, 2}).rows(1, 3);
  EXPECT_EQ(view.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(view.as<float>(), data.data() + 6);
  EXPECT_EQ(view.stride(0), 6u);
}

TEST(TensorView, ACopyHasNoGapsAndTheOrderOfTheView) {
  std::vector<int32_t> data(24);
  std::iota(data.begin(), data.end(), 0);
  const TensorView turned(data.data(), DType::i32, {2, 3, 2}, {2, 8, 1, 0});  // [axis 1, axis 0, part of axis 2]
  const Tensor copy = copy_of(turned);
  const std::vector<int32_t> expected = {0, 1, 8, 9, 16, 17, 2, 3, 10, 11, 18, 19};
  EXPECT_EQ(std::vector<int32_t>(copy.as<int32_t>(), copy.as<int32_t>() + copy.elements()), expected);
  const TensorView strided(data.data(), DType::i32, {3}, {5, 0, 0, 0});
  const Tensor three = copy_of(strided);
  EXPECT_EQ(std::vector<int32_t>(three.as<int32_t>(), three.as<int32_t>() + 3), (std::vector<int32_t>{0, 5, 10}));
  std::vector<int32_t> back(24, -1);
  copy_elements(copy.view(), TensorView(back.data(), DType::i32, {2, 3, 2}, {2, 8, 1, 0}));
  for (size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], i % 8 < 4 ? static_cast<int32_t>(i) : -1) << i;
  EXPECT_EQ(copy_of(TensorView(nullptr, DType::f32, {0, 3})).elements(), 0u);
}

TEST(TensorView, KnowsTheDTypeOfEveryElementType) {
  static_assert(dtype_of<const float>() == DType::f32 && dtype_of<bf16>() == DType::bf16 && dtype_of<f16>() == DType::f16);
  static_assert(dtype_of<int64_t>() == DType::i64 && dtype_of<double>() == DType::f64 && dtype_of<bool>() == DType::boolean);
  static_assert(dtype_of<std::byte>() == DType::u8 && dtype_of<int8_t>() == DType::i8);
  uint64_t value = 5;
  EXPECT_EQ(*TensorView(&value, DType::u64, {1}).as<uint64_t>(), 5u);
}

TEST(MatView, RowsAndColumnsAreViewsOfTheSameElements) {
  std::vector<int> data(20);
  std::iota(data.begin(), data.end(), 0);
  const MatView<int> m(data.data(), 4, 5);
  EXPECT_EQ(m[2][3], 13);
  EXPECT_EQ(m.rows(1, 3)[1][0], 10);
  EXPECT_EQ(m.rows(1, 3).rows(), 2u);
  EXPECT_EQ(m.columns(2, 4)[3][1], 18);
  EXPECT_EQ(m.columns(2, 4).cols(), 2u);
  EXPECT_EQ(m.rows(4, 4).rows(), 0u);
  const MatView<const int> read = m;
  EXPECT_EQ(read.row(3), data.data() + 15);
}

}  // namespace
}  // namespace kilin

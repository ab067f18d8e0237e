#include "weights/tensor_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "core/tensor.h"

namespace kilin {
namespace {

StoredTensor stored(const Tensor& tensor) {
  return {
      .name = "t", .format = tensor.dtype(), .shape = tensor.shape(), .bytes = {tensor.data(), tensor.bytes()}, .file = "f"};
}

// Values in [-1, 1), of several blocks.
Tensor random_tensor(DType dtype) {
  Tensor t(dtype, {611, 1003});
  for (size_t i = 0; i < t.elements(); ++i) {
    const auto x = static_cast<float>(2 * random_uniform(7, i) - 1);
    if (dtype == DType::f32) t.as<float>()[i] = x;
    if (dtype == DType::bf16) t.as<bf16>()[i] = to_bf16(x);
    if (dtype == DType::f16) t.as<f16>()[i] = to_f16(x);
    if (dtype == DType::f64) t.as<double>()[i] = static_cast<double>(x);
  }
  return t;
}

void plant(Tensor& t, size_t index, float x) {
  if (t.dtype() == DType::f32) t.as<float>()[index] = x;
  if (t.dtype() == DType::bf16) t.as<bf16>()[index] = to_bf16(x);
  if (t.dtype() == DType::f16) t.as<f16>()[index] = to_f16(x);
  if (t.dtype() == DType::f64) t.as<double>()[index] = static_cast<double>(x);
}

constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

TEST(TensorScan, FiniteValuesPass) {
  ThreadPool pool(3);
  for (DType dtype : kFloats) {
    const Tensor t = random_tensor(dtype);
    const FiniteScan scan = scan_finite(stored(t), pool);
    EXPECT_TRUE(scan.finite()) << to_string(dtype);
    EXPECT_FALSE(scan.first) << to_string(dtype);
    EXPECT_FALSE(scan.all_zero) << to_string(dtype);
  }
}

TEST(TensorScan, EachNanAndInfinityIsCountedAndTheFirstIsNamed) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  ThreadPool pool(3);
  for (DType dtype : kFloats) {
    Tensor t = random_tensor(dtype);
    plant(t, t.elements() - 1, kNan);
    plant(t, 500'000, -kNan);
    plant(t, 400'000, -kInf);
    const FiniteScan scan = scan_finite(stored(t), pool);
    EXPECT_EQ(scan.nans, 2u) << to_string(dtype);
    EXPECT_EQ(scan.infinities, 1u) << to_string(dtype);
    EXPECT_EQ(scan.first, 400'000u) << to_string(dtype);
    EXPECT_EQ(position_of(t.shape(), *scan.first), "[398, 806]");
  }
}

TEST(TensorScan, TheLargestFiniteValueIsFinite) {
  ThreadPool pool(1);
  Tensor t(DType::bf16, {2});
  t.as<bf16>()[0] = {0x7f7f};
  t.as<bf16>()[1] = {0xff7f};
  EXPECT_TRUE(scan_finite(stored(t), pool).finite());
}

TEST(TensorScan, ZerosOfBothSignsAreAllZeroAndOneSubnormalIsNot) {
  ThreadPool pool(2);
  Tensor t(DType::bf16, {1000, 1000});
  t.as<bf16>()[77] = {0x8000};
  EXPECT_TRUE(scan_finite(stored(t), pool).all_zero);
  t.as<bf16>()[999'999] = {0x0001};
  EXPECT_FALSE(scan_finite(stored(t), pool).all_zero);
}

TEST(TensorScan, StatisticsAreThoseOfAPlainLoopWhateverTheNumberOfThreads) {
  for (DType dtype : kFloats) {
    Tensor t = random_tensor(dtype);
    plant(t, 12, std::numeric_limits<float>::infinity());
    ThreadPool one(1), three(3);
    const TensorStatistics a = tensor_statistics(stored(t), one), b = tensor_statistics(stored(t), three);
    EXPECT_EQ(a.mean, b.mean);
    EXPECT_EQ(a.rms, b.rms);
    EXPECT_NEAR(a.mean, 0, 2e-3);
    EXPECT_NEAR(a.rms, std::sqrt(1.0 / 3), 1e-3);
    EXPECT_NEAR(a.min, -1, 1e-2);
    EXPECT_NEAR(a.max, 1, 1e-2);
    EXPECT_EQ(a.scan.infinities, 1u);
  }
}

TEST(TensorScan, IntegersAreFiniteAndHaveNoStatistics) {
  ThreadPool pool(1);
  Tensor t(DType::i32, {3});
  t.as<int32_t>()[1] = -1;  // all bits set
  EXPECT_TRUE(scan_finite(stored(t), pool).finite());
  EXPECT_FALSE(scan_finite(stored(t), pool).all_zero);
  EXPECT_THROW(tensor_statistics(stored(t), pool), Error);
}

TEST(TensorScan, ATensorOfNoElementsOrOfNoFiniteOneGivesZeros) {
  ThreadPool pool(2);
  const Tensor none(DType::f32, {0, 4});
  EXPECT_TRUE(scan_finite(stored(none), pool).finite());
  Tensor nan(DType::f32, {1});
  nan.as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const TensorStatistics statistics = tensor_statistics(stored(nan), pool);
  EXPECT_EQ(statistics.max, 0);
  EXPECT_EQ(statistics.rms, 0);
  EXPECT_EQ(statistics.scan.nans, 1u);
}

TEST(TensorScan, BlocksAreLookedAtByTheValuesThatTheyStandFor) {
  ThreadPool pool(3);
  constexpr size_t kRows = 300, kCols = 2048, kBlocks = kRows * kCols / 32;
  std::vector<std::byte> bytes(kBlocks * 34);
  const auto set_scale = [&](size_t block, uint16_t bits) { std::memcpy(bytes.data() + block * 34, &bits, sizeof bits); };
  const StoredTensor t{.name = "t", .format = BlockFormat::q8_0, .shape = {kRows, kCols}, .bytes = bytes, .file = "f"};
  EXPECT_TRUE(scan_finite(t, pool).all_zero);
  for (size_t block = 0; block < kBlocks; ++block) {
    set_scale(block, 0x3800);  // 0.5
    for (size_t i = 0; i < 32; ++i) bytes[block * 34 + 2 + i] = i % 2 == 0 ? std::byte(6) : std::byte(-8);
  }
  const TensorStatistics statistics = tensor_statistics(t, pool);
  EXPECT_TRUE(statistics.scan.finite());
  EXPECT_FALSE(statistics.scan.all_zero);
  EXPECT_EQ(statistics.min, -4);
  EXPECT_EQ(statistics.max, 3);
  EXPECT_EQ(statistics.mean, -0.5);
  EXPECT_EQ(statistics.rms, std::sqrt(12.5));
  set_scale(kBlocks - 1, 0x7c00);
  set_scale(12345, 0x7e00);
  const FiniteScan scan = scan_finite(t, pool);
  EXPECT_EQ(scan.first, 12345u * 32);
  EXPECT_EQ(scan.nans, 32u);
  EXPECT_EQ(scan.infinities, 32u);
}

}  // namespace
}  // namespace kilin

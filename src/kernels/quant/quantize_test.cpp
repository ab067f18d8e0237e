#include "kernels/quant/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "kernels/quant/blocks.h"

namespace kilin {
namespace {

constexpr std::array kWritten = {BlockFormat::q4_0, BlockFormat::q8_0, BlockFormat::q4_k, BlockFormat::q5_k, BlockFormat::q6_k};
constexpr std::array kRoundings = {Rounding::Searched, Rounding::Nearest};

std::vector<float> gaussian(size_t n, uint64_t seed) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - random_uniform(seed, 2 * i)));
    x[i] = static_cast<float>(radius * std::cos(6.283185307179586 * random_uniform(seed, 2 * i + 1)));
  }
  return x;
}

std::vector<std::byte> quantized(BlockFormat format, Rounding rounding, const std::vector<float>& x) {
  std::vector<std::byte> blocks(StorageFormat(format).bytes_of(x.size()));
  quantize_row(format, rounding, x.data(), x.size(), blocks.data());
  return blocks;
}

std::vector<float> read_back(BlockFormat format, Rounding rounding, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  dequantize_row(format, quantized(format, rounding, x).data(), x.size(), y.data());
  return y;
}

double squared_error(const std::vector<float>& x, const std::vector<float>& y) {
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) total += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
  return total;
}

// False where elements exceed every scale of a format, so that the error is that of clipping them.
bool within_reach(const std::vector<float>& x) {
  return std::all_of(x.begin(), x.end(), [](float v) { return std::fabs(v) < 0x1p28f; });
}

// Inputs of many kinds, each one super-block long.
std::vector<std::pair<std::string, std::vector<float>>> block_cases() {
  std::vector<std::pair<std::string, std::vector<float>>> cases;
  const auto add = [&](const std::string& name, auto&& element) {
    std::vector<float> x(256);
    const std::vector<float> normal = gaussian(256, cases.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = element(i, normal[i]);
    cases.emplace_back(name, x);
  };
  add("zeros", [](size_t, float) { return 0.0f; });
  add("a constant", [](size_t, float) { return 0.37f; });
  add("a negative constant", [](size_t, float) { return -0.37f; });
  add("two values", [](size_t i, float) { return i % 2 ? 0.1f : -0.2f; });
  for (int i = 0; i < 8; ++i) add("Gaussian", [](size_t, float normal) { return 0.02f * normal; });
  add("heavy tails", [](size_t, float normal) { return normal * normal * normal; });
  add("positive", [](size_t, float normal) { return 3 + 0.1f * normal; });
  add("negative", [](size_t, float normal) { return -3 + 0.1f * normal; });
  add("one outlier", [](size_t i, float normal) { return i == 77 ? 100.0f : 0.01f * normal; });
  add("one element", [](size_t i, float) { return i == 200 ? -5.0f : 0.0f; });
  add("groups of other sizes", [](size_t i, float normal) { return std::ldexp(normal, -static_cast<int>(i / 16)); });
  add("at fp16's limit", [](size_t, float normal) { return std::copysign(65504.0f, normal); });
  add("past every scale", [](size_t, float normal) { return 3e37f * normal; });
  add("the largest floats", [](size_t, float normal) { return std::copysign(std::numeric_limits<float>::max(), normal); });
  add("large and small", [](size_t i, float normal) { return i % 16 == 0 ? 3e38f : normal; });
  add("under fp16's least", [](size_t, float normal) { return 1e-8f * normal; });
  add("about fp16's least", [](size_t, float normal) { return 1e-6f * normal; });
  add("subnormal", [](size_t, float normal) { return 1e-40f * normal; });
  return cases;
}

TEST(Quantize, WritesFiveFormats) {
  size_t written = 0;
  for (BlockFormat format : kBlockFormats) written += can_quantize(format);
  EXPECT_EQ(written, kWritten.size());
  for (BlockFormat format : kWritten) EXPECT_TRUE(can_quantize(format)) << to_string(format);
}

TEST(Quantize, FiniteElementsGiveFiniteBlocks) {
  for (BlockFormat format : kWritten)
    for (Rounding rounding : kRoundings)
      for (const auto& [name, x] : block_cases())
        for (float y : read_back(format, rounding, x)) ASSERT_TRUE(std::isfinite(y)) << to_string(format) << ", " << name;
}

TEST(Quantize, SearchedIsNeverFurtherFromABlockThanNearest) {
  for (BlockFormat format : kWritten)
    for (const auto& [name, whole] : block_cases())
      for (size_t begin = 0; begin < whole.size(); begin += block_size(format).elements) {
        const auto from = whole.begin() + static_cast<std::ptrdiff_t>(begin);
        const std::vector<float> x(from, from + static_cast<std::ptrdiff_t>(block_size(format).elements));
        if (!within_reach(x)) continue;
        ASSERT_LE(squared_error(x, read_back(format, Rounding::Searched, x)),
                  squared_error(x, read_back(format, Rounding::Nearest, x)))
            << to_string(format) << ", " << name << ", from " << begin;
      }
}

TEST(Quantize, GaussianRowsLoseWhatTheFormatCosts) {
  struct Bound {
    BlockFormat format;
    double searched, nearest;  // rms error over the rms of the row
  };
  constexpr Bound kBounds[] = {{BlockFormat::q4_0, 0.0815, 0.0865},
                               {BlockFormat::q4_k, 0.0715, 0.0790},
                               {BlockFormat::q5_k, 0.0353, 0.0385},
                               {BlockFormat::q6_k, 0.0167, 0.0190},
                               {BlockFormat::q8_0, 0.0048, 0.0054}};
  for (float size : {1.0f, 0.01f, 3000.0f}) {
    std::vector<float> x = gaussian(256 * 200, 1);
    double square = 0;
    for (float& v : x) v *= size, square += double{v} * v;
    for (const Bound& bound : kBounds) {
      const auto rms = [&](Rounding rounding) {
        return std::sqrt(squared_error(x, read_back(bound.format, rounding, x)) / square);
      };
      EXPECT_LT(rms(Rounding::Searched), bound.searched) << to_string(bound.format) << " of " << size;
      EXPECT_LT(rms(Rounding::Nearest), bound.nearest) << to_string(bound.format) << " of " << size;
    }
  }
}

TEST(Quantize, ConstantsAndSingleElementsComeBack) {
  for (BlockFormat format : kWritten)
    for (Rounding rounding : kRoundings)
      for (float value : {0.0f, 1.0f, -1.0f, 0.37f, -0.37f, 1e4f, -65000.0f}) {
        const std::vector<float> constant(256, value);
        for (float y : read_back(format, rounding, constant))
          ASSERT_NEAR(y, value, std::fabs(value) * 1e-3f) << to_string(format);
        std::vector<float> single(256);
        single[130] = value;
        const std::vector<float> y = read_back(format, rounding, single);
        for (size_t i = 0; i < y.size(); ++i)
          ASSERT_NEAR(y[i], single[i], std::fabs(value) * 1e-3f) << to_string(format) << " " << i;
      }
}

TEST(Quantize, AnOutlierCostsItsOwnBlockAlone) {
  for (BlockFormat format : {BlockFormat::q4_0, BlockFormat::q8_0}) {
    std::vector<float> x = gaussian(64, 3);
    const std::vector<float> plain = read_back(format, Rounding::Searched, x);
    x[40] = 1000;
    const std::vector<float> y = read_back(format, Rounding::Searched, x);
    for (size_t i = 0; i < 32; ++i) ASSERT_EQ(y[i], plain[i]);
    EXPECT_NEAR(y[40], 1000, 5);
  }
}

TEST(Quantize, ABlockDependsOnItsOwnElementsAlone) {
  for (BlockFormat format : kWritten)
    for (Rounding rounding : kRoundings) {
      const std::vector<float> row = gaussian(1024, 5);
      const size_t elements = block_size(format).elements;
      std::vector<std::byte> apart;
      for (size_t begin = 0; begin < row.size(); begin += elements) {
        const auto from = row.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto block = quantized(format, rounding, std::vector<float>(from, from + static_cast<std::ptrdiff_t>(elements)));
        apart.insert(apart.end(), block.begin(), block.end());
      }
      EXPECT_EQ(quantized(format, rounding, row), apart) << to_string(format);
    }
}

TEST(Quantize, NearestFollowsThePlainRule) {
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.25f * static_cast<float>(i) - 3.0f;  // -3 .. 4.75
  BlockParts parts;

  take_apart(BlockFormat::q4_0, quantized(BlockFormat::q4_0, Rounding::Nearest, x).data(), parts);
  EXPECT_NEAR(parts.d, 4.75f / -8, 1e-3f);  // the largest magnitude takes the lowest code
  EXPECT_EQ(parts.codes[31], 0);
  EXPECT_EQ(parts.codes[12], 8);
  EXPECT_EQ(parts.codes[0], 13);  // -3 / d = 5.05

  take_apart(BlockFormat::q8_0, quantized(BlockFormat::q8_0, Rounding::Nearest, x).data(), parts);
  EXPECT_NEAR(parts.d, 4.75f / 127, 1e-4f);
  EXPECT_EQ(parts.codes[31], 128 + 127);
  EXPECT_EQ(parts.codes[0], 128 - 80);
}

TEST(Quantize, Q8_0NeverUsesTheCodeOfMinus128) {
  std::vector<float> x = gaussian(32 * 500, 9);
  BlockParts parts;
  for (Rounding rounding : kRoundings) {
    const auto blocks = quantized(BlockFormat::q8_0, rounding, x);
    for (size_t at = 0; at < blocks.size(); at += block_size(BlockFormat::q8_0).bytes) {
      take_apart(BlockFormat::q8_0, blocks.data() + at, parts);
      for (size_t i = 0; i < 32; ++i) ASSERT_NE(parts.codes[i], 0);
    }
  }
}

}  // namespace
}  // namespace kilin

#include "kernels/latent_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/random.h"
#include "support/compare.h"

namespace kilin {
namespace {

std::vector<float> some_row(size_t width, uint64_t seed, float magnitude = 3) {
  std::vector<float> row(width);
  for (size_t i = 0; i < width; ++i) row[i] = magnitude * static_cast<float>(2 * random_uniform(seed, i) - 1);
  return row;
}

std::vector<std::byte> stored(KvType type, const std::vector<float>& row) {
  std::vector<std::byte> bytes(latent_row_bytes(type, row.size()));
  store_latent_row(type, row.data(), row.size(), bytes.data());
  return bytes;
}

std::vector<float> read_back(KvType type, const std::vector<float>& row) {
  std::vector<float> back(row.size());
  load_latent_row(type, stored(type, row).data(), row.size(), back.data());
  return back;
}

// The values of group g.
std::span<const float> group(const std::vector<float>& row, size_t g) {
  const size_t begin = g * kLatentGroup;
  return std::span(row).subspan(begin, std::min(kLatentGroup, row.size() - begin));
}

float largest_of(std::span<const float> values) {
  float largest = 0;
  for (float x : values) largest = std::max(largest, std::fabs(x));
  return largest;
}

TEST(LatentRow, Q8ErrsByHalfAStepOfItsGroupAtMost) {
  for (size_t width : {1u, 63u, 64u, 160u, 576u})
    for (float magnitude : {1e-30f, 1e-3f, 1.0f, 300.0f, 1e30f}) {
      std::vector<float> row = some_row(width, width, magnitude);
      for (size_t i = 0; i < width; i += 70) row[i] *= 20;  // groups of different magnitudes
      const std::vector<float> back = read_back(KvType::q8, row);
      for (size_t g = 0; g * kLatentGroup < width; ++g) {
        const float most = largest_of(group(row, g)) / 127 * 0.50002f;
        for (size_t i = 0; i < group(row, g).size(); ++i)
          EXPECT_LE(std::fabs(group(back, g)[i] - group(row, g)[i]), most) << width << " " << magnitude << " " << g << " " << i;
      }
    }
}

TEST(LatentRow, ARowThatWasReadAndIsStoredAgainKeepsItsBytes) {
  for (KvType type : {KvType::f32, KvType::bf16, KvType::q8})
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const std::vector<float> row = some_row(160, seed, std::exp(static_cast<float>(seed) / 5 - 20));
      EXPECT_BYTES_EQ(stored(type, read_back(type, row)), stored(type, row)) << to_string(type) << " " << seed;
    }
}

TEST(LatentRow, ZerosAndNumbersTooSmallForAScaleReadBackAsZero) {
  std::vector<float> row(130, 0.0f);
  row[64] = 1e-38f;
  row[65] = -std::numeric_limits<float>::denorm_min();
  for (float x : read_back(KvType::q8, row)) EXPECT_EQ(x, 0.0f);
}

TEST(LatentRow, WhatIsNoNumberStaysNoneInItsGroupAndTouchesNoOther) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    std::vector<float> row = some_row(160, 3);
    row[70] = bad;
    const std::vector<float> back = read_back(KvType::q8, row);
    for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(std::isnan(back[i]), i / kLatentGroup == 1) << i;
  }
}

TEST(LatentRow, TheLargestNumberDoesNotOverflow) {
  std::vector<float> row(64, std::numeric_limits<float>::max());
  row[1] = -row[0];
  for (float x : read_back(KvType::q8, row)) EXPECT_TRUE(std::isfinite(x));
}

TEST(LatentRow, WhatCannotBeCountedIsTheLargestNumber) {
  for (KvType type : {KvType::f32, KvType::bf16, KvType::q8}) EXPECT_EQ(latent_row_bytes(type, SIZE_MAX - 3), SIZE_MAX);
}

TEST(KvType, UnknownNamesAreRefusedWithTheKnownOnes) {
  for (KvType type : {KvType::f32, KvType::bf16, KvType::q8}) EXPECT_EQ(parse_kv_type(to_string(type)), type);
  try {
    parse_kv_type("q9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "kv-type 'q9' is not known; f32, bf16 and q8 are");
  }
}

}  // namespace
}  // namespace kilin

#include "cache/latent_kv_pool.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/dtype.h"
#include "core/error.h"
#include "support/compare.h"

namespace kilin {
namespace {

constexpr size_t kWidth = 5;

std::vector<float> ramp(size_t rows, float first) {
  std::vector<float> values(rows * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i) * 0.37f;
  return values;
}

TEST(LatentKvPool, ATokenOfThePublishedModelTakes8064Bytes) {
  EXPECT_EQ(LatentKvPool::bytes_per_token({.layers = 7, .width = 576, .type = KvType::bf16}), 8064u);
}

TEST(LatentKvPool, ReadsWhatWasWrittenAcrossPagesInEveryLayer) {
  LatentKvPool pool({.layers = 2, .width = kWidth, .type = KvType::f32}, 4);
  PageTable table(pool);
  table.grow(200);
  for (size_t layer = 0; layer < 2; ++layer) {
    const std::vector<float> rows = ramp(130, static_cast<float>(layer));
    pool.write(layer, table.pages(), 7, {const_cast<float*>(rows.data()), 130, kWidth});
  }
  for (size_t layer = 0; layer < 2; ++layer) {
    std::vector<float> back(130 * kWidth);
    pool.read(layer, table.pages(), 7, {back.data(), 130, kWidth});
    EXPECT_BYTES_EQ(back, ramp(130, static_cast<float>(layer)));
  }
}

TEST(LatentKvPool, Bf16RoundsEachValueToTheNearest) {
  LatentKvPool pool({.layers = 1, .width = kWidth, .type = KvType::bf16}, 1);
  PageTable table(pool);
  table.grow(3);
  std::vector<float> rows = ramp(3, 1.0f), back(rows.size());
  pool.write(0, table.pages(), 0, {rows.data(), 3, kWidth});
  pool.read(0, table.pages(), 0, {back.data(), 3, kWidth});
  for (float& x : rows) x = to_float(to_bf16(x));
  EXPECT_BYTES_EQ(back, rows);
}

TEST(LatentKvPool, PagesThatWereUsedComeBackZeroed) {
  LatentKvPool pool({.layers = 1, .width = kWidth, .type = KvType::f32}, 1);
  std::vector<float> rows = ramp(64, 1.0f);
  {
    PageTable table(pool);
    table.grow(64);
    pool.write(0, table.pages(), 0, {rows.data(), 64, kWidth});
  }
  PageTable table(pool);
  table.grow(64);
  pool.read(0, table.pages(), 0, {rows.data(), 64, kWidth});
  EXPECT_TRUE(std::ranges::all_of(rows, [](float x) { return x == 0.0f; }));
}

TEST(LatentKvPool, GrowingBeyondThePoolFailsAndKeepsWhatWasThere) {
  LatentKvPool pool({.layers = 1, .width = kWidth, .type = KvType::f32}, 2);
  PageTable table(pool);
  table.grow(64);
  EXPECT_THROW(table.grow(64 * 3), Error);
  EXPECT_EQ(table.pages().size(), 1u);
  EXPECT_EQ(pool.free_pages(), 1u);
  table.grow(65);
  EXPECT_EQ(table.pages().size(), 2u);
  const PageTable moved = std::move(table);
  EXPECT_EQ(moved.pages().size(), 2u);
}

TEST(KvType, UnknownNamesAreRefusedWithTheKnownOnes) {
  EXPECT_EQ(parse_kv_type("bf16"), KvType::bf16);
  try {
    parse_kv_type("q9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "kv-type q9 is not known; f32 and bf16 are");
  }
}

}  // namespace
}  // namespace kilin

#include "cache/latent_kv_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "support/allocations.h"
#include "support/compare.h"

namespace kilin {
namespace {

constexpr size_t kWidth = 5;

std::vector<float> ramp(size_t rows, float first) {
  std::vector<float> values(rows * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i) * 0.37f;
  return values;
}

TEST(LatentKvPool, ATokenOfThePublishedModelTakes8064BytesIn16Bits) {
  EXPECT_EQ(LatentKvPool::bytes_per_token({.layers = 7, .width = 576, .type = KvType::bf16}), 8064u);
  EXPECT_EQ(LatentKvPool::bytes_per_token({.layers = 7, .width = 576, .type = KvType::q8}), 7u * (576 + 9 * 4));
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

TEST(LatentKvPool, AReturnedPageIsZeroedInEveryLayerAndAtEveryPosition) {
  LatentKvPool pool({.layers = 3, .width = kWidth, .type = KvType::f32}, 4);
  const std::vector<float> rows = ramp(128, 1.0f);
  PageTable kept(pool);
  kept.grow(64);
  pool.write(2, kept.pages(), 0, {rows.data(), 64, kWidth});
  {
    PageTable table(pool);
    table.grow(128);
    for (size_t layer = 0; layer < 3; ++layer) pool.write(layer, table.pages(), 0, {rows.data(), 128, kWidth});
  }
  PageTable table(pool);
  table.grow(64 * 3);  // two that came back and a fresh one
  for (size_t layer = 0; layer < 3; ++layer) {
    std::vector<float> back(64 * 3 * kWidth, 1.0f);
    pool.read(layer, table.pages(), 0, {back.data(), 64 * 3, kWidth});
    EXPECT_TRUE(std::ranges::all_of(back, [](float x) { return x == 0.0f; })) << "layer " << layer;
  }
  std::vector<float> back(64 * kWidth);
  pool.read(2, kept.pages(), 0, {back.data(), 64, kWidth});
  EXPECT_BYTES_EQ(back, ramp(64, 1.0f));
}

TEST(LatentKvPool, ItsSizeCostsNoMemoryBeforePagesAreUsed) {
  const size_t pages = LatentKvPool::pages_for(10'000'000'000);
  LatentKvPool without_layers({.layers = 0, .width = 576, .type = KvType::bf16}, pages);
  LatentKvPool without_width({.layers = 7, .width = 0, .type = KvType::bf16}, pages);
  LatentKvPool large({.layers = 1, .width = kWidth, .type = KvType::bf16}, pages);
  for (LatentKvPool* pool : {&without_layers, &without_width, &large}) {
    EXPECT_EQ(pool->pages(), pages);
    for (int round = 0; round < 2; ++round) {
      PageTable table(*pool);
      table.grow(1000);
      EXPECT_EQ(table.pages().size(), 16u);
      EXPECT_EQ(pool->free_pages(), pages - 16);
    }
    EXPECT_EQ(pool->free_pages(), pages);
  }
}

TEST(LatentKvPool, ThatCannotBeCountedOrAddressedIsRefusedByName) {
  const auto refused = [](const LatentKvPool::Dimensions& dimensions, size_t pages, const std::string& part) {
    try {
      const LatentKvPool pool(dimensions, pages);
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted) << error.what();
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const size_t half = size_t{1} << 32;
  refused({.layers = 0, .width = 1, .type = KvType::f32}, half, "pages of latents");
  refused({.layers = half, .width = half, .type = KvType::bf16}, 1, "latents of the past");
  refused({.layers = 1, .width = SIZE_MAX / 2, .type = KvType::f32}, 1, "latents of the past");
  refused({.layers = 1 << 16, .width = 1 << 16, .type = KvType::f32}, half - 1, "latents of the past");
  EXPECT_EQ(LatentKvPool::bytes_per_token({.layers = half, .width = half, .type = KvType::f32}), SIZE_MAX);
}

TEST(LatentKvPool, GrowingToMoreTokensThanCanBeCountedIsAnErrorToo) {
  LatentKvPool pool({.layers = 1, .width = kWidth, .type = KvType::f32}, 2);
  PageTable table(pool);
  EXPECT_THROW(table.grow(SIZE_MAX), Error);
  EXPECT_EQ(pool.free_pages(), 2u);
}

TEST(LatentKvPool, GrowingWithoutMemoryForTheListsKeepsWhatWasThere) {
  for (size_t allowed = 0;; ++allowed) {
    LatentKvPool pool({.layers = 1, .width = kWidth, .type = KvType::f32}, 200);
    PageTable table(pool);
    table.grow(64);
    {
      const testing::FailingAllocation failing(allowed);
      try {
        table.grow(64 * 150);
      } catch (const std::bad_alloc&) {
      }
      if (!failing.happened()) {
        EXPECT_GE(allowed, 2u) << "the table's list and the pool's";
        break;
      }
    }
    EXPECT_EQ(table.pages().size(), 1u);
    EXPECT_EQ(pool.free_pages(), 199u);
    table.grow(64 * 200);
    EXPECT_EQ(pool.free_pages(), 0u);
  }
}

TEST(LatentKvPool, ATableMayOutliveItsPoolAndMoveAfterwards) {
  PageTable table, other;
  {
    LatentKvPool pool({.layers = 1, .width = kWidth, .type = KvType::f32}, 4);
    table = PageTable(pool);
    table.grow(130);
    other = PageTable(pool);
    other.grow(1);
  }
  other = std::move(table);
  EXPECT_EQ(other.pages().size(), 3u);
  other = PageTable();
}

TEST(LatentKvPool, GivingPagesBackAllocatesNothing) {
  LatentKvPool pool({.layers = 1, .width = kWidth, .type = KvType::f32}, 300);
  PageTable a(pool), b(pool);
  for (size_t tokens = 64; tokens <= 64 * 150; tokens += 64) {
    a.grow(tokens);
    b.grow(tokens);
  }
  const size_t before = testing::allocations();
  a = PageTable();
  b = PageTable();
  EXPECT_EQ(pool.free_pages(), 300u);
  EXPECT_EQ(testing::allocations(), before);
}

}  // namespace
}  // namespace kilin

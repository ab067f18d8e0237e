#include "cache/free_ids.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "support/allocations.h"

namespace kilin {
namespace {

using Taken = std::vector<FreeIds::Taken>;

// What `ids` hands out; empty if it refuses.
Taken take(FreeIds& ids, size_t count) {
  Taken taken;
  taken.reserve(count);
  const bool given = ids.take(count, taken);
  EXPECT_EQ(taken.size(), given ? count : 0);
  return taken;
}

TEST(FreeIds, EachNumberIsHandedOutOnceAndAgainOnlyWhenItCameBack) {
  FreeIds ids(5, "pages");
  std::set<uint32_t> taken;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ids.free(), 5 - i);
    const FreeIds::Taken one = take(ids, 1).at(0);
    EXPECT_TRUE(one.fresh);
    EXPECT_LT(one.id, 5u);
    EXPECT_TRUE(taken.insert(one.id).second);
  }
  EXPECT_EQ(ids.free(), 0u);
  ids.give_back(3);
  EXPECT_EQ(ids.free(), 1u);
  const FreeIds::Taken again = take(ids, 1).at(0);
  EXPECT_EQ(again.id, 3u);
  EXPECT_FALSE(again.fresh);
}

TEST(FreeIds, WhatCameBackGoesOutBeforeWhatNobodyHad) {
  FreeIds ids(100, "pages");
  for (int i = 0; i < 50; ++i) {
    const FreeIds::Taken one = take(ids, 1).at(0);
    EXPECT_EQ(one.id, 0u);
    EXPECT_EQ(one.fresh, i == 0);
    ids.give_back(one.id);
  }
}

TEST(FreeIds, AllThatWereAskedForOrNone) {
  FreeIds ids(10, "pages");
  EXPECT_EQ(take(ids, 7).size(), 7u);
  EXPECT_TRUE(take(ids, 4).empty());
  EXPECT_EQ(ids.free(), 3u);
  EXPECT_EQ(take(ids, 3).size(), 3u);
}

TEST(FreeIds, CostNothingForNumbersThatNobodyHad) {
  const size_t before = testing::allocations();
  const FreeIds ids(UINT32_MAX, "pages");
  EXPECT_EQ(testing::allocations(), before);
  EXPECT_EQ(ids.free(), UINT32_MAX);
}

TEST(FreeIds, GivingBackAndTakingAgainAllocateNothing) {
  FreeIds ids(1000, "pages");
  Taken taken = take(ids, 700);
  const size_t before = testing::allocations();
  for (uint32_t id = 0; id < 700; ++id) ids.give_back(id);
  taken.clear();
  EXPECT_TRUE(ids.take(700, taken));
  EXPECT_EQ(testing::allocations(), before);
}

TEST(FreeIds, WithoutMemoryNothingChanges) {
  FreeIds ids(1000, "pages");
  Taken taken;
  taken.reserve(10);
  {
    const testing::FailingAllocation failing(0);
    EXPECT_THROW(ids.take(10, taken), std::bad_alloc);
  }
  EXPECT_TRUE(taken.empty());
  EXPECT_EQ(ids.free(), 1000u);
  EXPECT_EQ(take(ids, 10).at(0).id, 0u);
}

TEST(FreeIds, ThreadsThatTakeAndGiveBackAtOnceNeverShareANumber) {
  FreeIds ids(8, "pages");
  std::array<std::atomic<int>, 8> holders{};
  std::atomic<bool> shared = false;
  const auto work = [&] {
    for (int round = 0; round < 2000; ++round)
      for (const FreeIds::Taken& one : take(ids, 2)) {
        if (holders[one.id].fetch_add(1) != 0) shared = true;
        holders[one.id].fetch_sub(1);
        ids.give_back(one.id);
      }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared);
  EXPECT_EQ(ids.free(), 8u);
}

TEST(FreeIds, MoreThan32BitsNumberAreRefusedByName) {
  try {
    const FreeIds ids(size_t{UINT32_MAX} + 1, "pages of latents");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted);
    EXPECT_STREQ(error.what(), "a pool of 4294967296 pages of latents is too large; at most 4294967295 can be numbered");
  }
}

}  // namespace
}  // namespace kilin

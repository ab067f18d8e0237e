#include "cache/free_ids.h"

#include <gtest/gtest.h>

#include <new>
#include <set>
#include <string>

#include "core/error.h"
#include "support/allocations.h"

namespace kilin {
namespace {

TEST(FreeIds, EachNumberIsHandedOutOnceAndAgainOnlyWhenItCameBack) {
  FreeIds ids(5, "pages");
  ids.prepare(5);
  std::set<uint32_t> taken;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ids.free(), 5 - i);
    const FreeIds::Taken one = ids.take();
    EXPECT_TRUE(one.fresh);
    EXPECT_LT(one.id, 5u);
    EXPECT_TRUE(taken.insert(one.id).second);
  }
  EXPECT_EQ(ids.free(), 0u);
  ids.give_back(3);
  EXPECT_EQ(ids.free(), 1u);
  ids.prepare(1);
  const FreeIds::Taken again = ids.take();
  EXPECT_EQ(again.id, 3u);
  EXPECT_FALSE(again.fresh);
}

TEST(FreeIds, WhatCameBackGoesOutBeforeWhatNobodyHad) {
  FreeIds ids(100, "pages");
  for (int i = 0; i < 50; ++i) {
    ids.prepare(1);
    const FreeIds::Taken one = ids.take();
    EXPECT_EQ(one.id, 0u);
    EXPECT_EQ(one.fresh, i == 0);
    ids.give_back(one.id);
  }
}

TEST(FreeIds, CostNothingForNumbersThatNobodyHad) {
  const size_t before = testing::allocations();
  const FreeIds ids(UINT32_MAX, "pages");
  EXPECT_EQ(testing::allocations(), before);
  EXPECT_EQ(ids.free(), UINT32_MAX);
}

TEST(FreeIds, OnlyPreparingAllocates) {
  FreeIds ids(1000, "pages");
  ids.prepare(700);
  const size_t before = testing::allocations();
  for (size_t i = 0; i < 700; ++i) ids.take();
  for (uint32_t id = 0; id < 700; ++id) ids.give_back(id);
  ids.prepare(700);
  for (size_t i = 0; i < 700; ++i) ids.take();
  EXPECT_EQ(testing::allocations(), before);
}

TEST(FreeIds, WithoutMemoryNothingChanges) {
  FreeIds ids(1000, "pages");
  {
    const testing::FailingAllocation failing(0);
    EXPECT_THROW(ids.prepare(10), std::bad_alloc);
  }
  EXPECT_EQ(ids.free(), 1000u);
  ids.prepare(10);
  EXPECT_EQ(ids.take().id, 0u);
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

#include "cache/recurrent_state_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/kda.h"
#include "support/compare.h"

namespace kilin {
namespace {

constexpr RecurrentStatePool::Dimensions kSmall = {
    .layers = 2, .heads = 3, .key_dim = 5, .value_dim = 18, .conv_rows = 3, .conv_cols = 7};

std::span<float> everything(RecurrentStatePool& pool, StateSlot slot) {
  return {pool.state(slot, 0), pool.bytes_per_slot() / sizeof(float)};
}

bool all_zero(std::span<const float> values) {
  return std::ranges::all_of(values, [](float x) { return x == 0.0f; });
}

TEST(RecurrentStatePool, OneSequenceOfThePublishedModelTakes44Megabytes) {
  const RecurrentStatePool::Dimensions real = {
      .layers = 20, .heads = 32, .key_dim = 128, .value_dim = 128, .conv_rows = 3, .conv_cols = 12288};
  EXPECT_EQ(RecurrentStatePool::bytes_per_slot(real), 20u * (32 * 128 * 128 + 3 * 12288) * 4);
}

TEST(RecurrentStatePool, ASlotPoisonedAndFreedComesBackZeroed) {
  RecurrentStatePool pool(kSmall, 1);
  {
    const StateHandle handle = pool.acquire();
    std::ranges::fill(everything(pool, handle.slot()), std::numeric_limits<float>::quiet_NaN());
  }
  const StateHandle again = pool.acquire();
  EXPECT_TRUE(all_zero(everything(pool, again.slot())));
}

TEST(RecurrentStatePool, NeverHandsOutSlotZeroAndSaysWhenItIsFull) {
  RecurrentStatePool pool(kSmall, 2);
  StateHandle a = pool.acquire();
  const StateHandle b = pool.acquire();
  EXPECT_NE(a.slot(), RecurrentStatePool::kDummySlot);
  EXPECT_NE(b.slot(), RecurrentStatePool::kDummySlot);
  EXPECT_NE(a.slot(), b.slot());
  EXPECT_THROW(pool.acquire(), Error);
  a = StateHandle();
  EXPECT_EQ(pool.free_slots(), 1u);
  EXPECT_TRUE(pool.acquire().valid());
}

TEST(RecurrentStatePool, MovedHandlesGiveTheirSlotBackOnce) {
  RecurrentStatePool pool(kSmall, 2);
  {
    StateHandle a = pool.acquire();
    StateHandle b = std::move(a);
    StateHandle c = pool.acquire();
    c = std::move(b);
  }
  EXPECT_EQ(pool.free_slots(), 2u);
}

TEST(RecurrentStatePool, AHandleMayOutliveItsPoolAndMoveAfterwards) {
  StateHandle a, b;
  {
    RecurrentStatePool pool(kSmall, 2);
    a = pool.acquire();
    b = pool.acquire();
  }
  a = std::move(b);
  EXPECT_EQ(a.slot(), 2u);
  a = StateHandle();
}

TEST(RecurrentStatePool, ASnapshotRestoresEveryBit) {
  RecurrentStatePool pool(kSmall, 2);
  const StateHandle a = pool.acquire(), b = pool.acquire();
  float next = 1.0f;
  for (float& x : everything(pool, a.slot())) x = next++;
  StateSnapshot snapshot = pool.snapshot(a.slot());
  EXPECT_EQ(pool.head_state(snapshot, 1, 2)[0], pool.head_state(a.slot(), 1, 2)[0]);
  EXPECT_EQ(pool.conv_tail(snapshot, 1)[2][6], pool.conv_tail(a.slot(), 1)[2][6]);
  pool.restore(b.slot(), snapshot);
  EXPECT_BYTES_EQ(everything(pool, a.slot()), everything(pool, b.slot()));
}

TEST(RecurrentStatePool, LayersHeadsAndTailsDoNotOverlap) {
  RecurrentStatePool pool(kSmall, 1);
  const StateHandle handle = pool.acquire();
  float mark = 1.0f;
  for (size_t layer = 0; layer < kSmall.layers; ++layer) {
    for (size_t head = 0; head < kSmall.heads; ++head)
      std::fill_n(pool.head_state(handle.slot(), layer, head), kda_state_floats(kSmall.key_dim, kSmall.value_dim), mark++);
    const MatView<float> tail = pool.conv_tail(handle.slot(), layer);
    for (size_t r = 0; r < tail.rows(); ++r) std::ranges::fill(tail[r], mark);
    ++mark;
  }
  for (size_t layer = 0, m = 1; layer < kSmall.layers; ++layer) {
    for (size_t head = 0; head < kSmall.heads; ++head) EXPECT_EQ(pool.head_state(handle.slot(), layer, head)[0], float(m++));
    EXPECT_EQ(pool.conv_tail(handle.slot(), layer)[0][0], float(m++));
  }
}

TEST(RecurrentStatePool, ExportGivesKeysByValuesAndImportTakesThem) {
  RecurrentStatePool pool(kSmall, 1);
  const StateHandle handle = pool.acquire();
  std::vector<float> in(kSmall.key_dim * kSmall.value_dim), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  pool.import_state(handle.slot(), 1, 2, {in.data(), kSmall.key_dim, kSmall.value_dim});
  EXPECT_EQ(pool.head_state(handle.slot(), 1, 2)[kda_state_index(kSmall.key_dim, 4, 17)], in[4 * 18 + 17]);
  pool.export_state(handle.slot(), 1, 2, {out.data(), kSmall.key_dim, kSmall.value_dim});
  EXPECT_BYTES_EQ(in, out);
}

TEST(RecurrentStatePool, ItsSizeCostsNoMemoryBeforeSlotsAreUsed) {
  RecurrentStatePool pool(kSmall, 100'000'000);
  RecurrentStatePool without_layers({.layers = 0, .heads = 1, .key_dim = 1, .value_dim = 1, .conv_rows = 1, .conv_cols = 1},
                                    UINT32_MAX);
  EXPECT_EQ(pool.slots(), 100'000'000u);
  EXPECT_EQ(without_layers.slots(), UINT32_MAX);
  const StateHandle handle = without_layers.acquire();
  EXPECT_EQ(without_layers.free_slots(), UINT32_MAX - 1);
  EXPECT_TRUE(without_layers.snapshot(handle.slot()).values.empty());
}

TEST(RecurrentStatePool, ThatCannotBeCountedOrAddressedIsRefusedByName) {
  const size_t half = size_t{1} << 32;
  const auto refused = [](const RecurrentStatePool::Dimensions& dimensions, size_t slots) {
    try {
      const RecurrentStatePool pool(dimensions, slots);
      ADD_FAILURE() << slots;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted) << error.what();
      EXPECT_NE(std::string(error.what()).find("recurrent states"), std::string::npos) << error.what();
    }
  };
  refused({.layers = 0, .heads = 0, .key_dim = 0, .value_dim = 0, .conv_rows = 0, .conv_cols = 0}, half);
  refused(kSmall, SIZE_MAX);
  using Field = size_t RecurrentStatePool::Dimensions::*;
  using D = RecurrentStatePool::Dimensions;
  for (const Field field : {&D::layers, &D::heads, &D::key_dim, &D::value_dim, &D::conv_rows, &D::conv_cols})
    for (const size_t value : {SIZE_MAX, SIZE_MAX - 14, SIZE_MAX / 4, SIZE_MAX / 16 + 1}) {
      RecurrentStatePool::Dimensions dimensions = kSmall;
      dimensions.*field = value;
      refused(dimensions, 3);
    }
  EXPECT_EQ(RecurrentStatePool::bytes_per_slot(
                {.layers = half, .heads = half, .key_dim = 1, .value_dim = 1, .conv_rows = 0, .conv_cols = 0}),
            SIZE_MAX);
}

}  // namespace
}  // namespace kilin

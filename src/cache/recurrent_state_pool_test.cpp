#include "cache/recurrent_state_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

}  // namespace
}  // namespace kilin

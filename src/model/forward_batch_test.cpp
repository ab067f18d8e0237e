#include "model/forward_batch.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/error.h"

namespace kilin {
namespace {

// A batch of two sequences, five tokens, right in every part; tests break one.
struct Parts {
  MemoryPools pools = {
      RecurrentStatePool({.layers = 1, .heads = 1, .key_dim = 4, .value_dim = 4, .conv_rows = 3, .conv_cols = 12}, 2),
      LatentKvPool({.layers = 1, .width = 4, .type = KvType::f32}, 2)};
  std::vector<int32_t> ids = {1, 2, 3, 4, 5};
  std::vector<size_t> cu_seqlens = {0, 3, 5};
  std::vector<PageId> pages = {0, 1};
  std::vector<SnapshotRequest> snapshots;
  std::vector<SequenceSpan> sequences = {{.mode = ForwardMode::Extend, .start = 62, .state_slot = 1, .pages = pages},
                                         {.mode = ForwardMode::Decode, .start = 0, .state_slot = 2, .pages = pages}};
  std::vector<uint32_t> rows = {2, 4};

  void validate() { ForwardBatch{ids, cu_seqlens, sequences, rows, &pools}.validate(10); }
};

TEST(ForwardBatch, ARightOneIsAccepted) {
  Parts p;
  EXPECT_NO_THROW(p.validate());
  StateSnapshot snapshot = p.pools.states.blank_snapshot();
  p.snapshots = {{64, &snapshot}};
  p.sequences[0].snapshots = p.snapshots;
  EXPECT_NO_THROW(p.validate());
}

TEST(ForwardBatch, EveryContradictionIsRefused) {
  StateSnapshot snapshot = Parts().pools.states.blank_snapshot(), foreign;
  const std::vector<std::pair<const char*, std::function<void(Parts&)>>> faults = {
      {"cu_seqlens",
       [](Parts& p) {
         p.cu_seqlens = {0, 5};
       }},
      {"cu_seqlens",
       [](Parts& p) {
         p.cu_seqlens = {0, 3, 4};
       }},
      {"cu_seqlens",
       [](Parts& p) {
         p.cu_seqlens = {1, 3, 5};
       }},
      {"descends",
       [](Parts& p) {
         p.cu_seqlens = {0, 6, 5};
       }},
      {"vocabulary", [](Parts& p) { p.ids[3] = 10; }},
      {"vocabulary", [](Parts& p) { p.ids[3] = -1; }},
      {"logit_rows",
       [](Parts& p) {
         p.rows = {4, 2};
       }},
      {"logit_rows",
       [](Parts& p) {
         p.rows = {2, 2};
       }},
      {"logit_rows", [](Parts& p) { p.rows = {5}; }},
      {"pages", [](Parts& p) { p.sequences[0].start = 126; }},
      {"pages", [](Parts& p) { p.sequences[0].start = std::numeric_limits<size_t>::max(); }},
      {"page 2", [](Parts& p) { p.pages[1] = 2; }},
      {"state slot 3", [](Parts& p) { p.sequences[1].state_slot = 3; }},
      {"share state slot 1", [](Parts& p) { p.sequences[1].state_slot = 1; }},
      {"not one of this pool",
       [&](Parts& p) {
         p.snapshots = {{64, &foreign}};
       }},
      {"not one of this pool",
       [](Parts& p) {
         p.snapshots = {{64, nullptr}};
       }},
      {"state slot", [](Parts& p) { p.sequences[1].state_slot = RecurrentStatePool::kDummySlot; }},
      {"Idle", [](Parts& p) { p.sequences[0].mode = ForwardMode::Idle; }},
      {"snapshot at position 63",
       [&](Parts& p) {
         p.snapshots = {{63, &snapshot}};
       }},
      {"snapshot at position 128",
       [&](Parts& p) {
         p.snapshots = {{128, &snapshot}};
       }},
      {"snapshot at position 64",
       [&](Parts& p) {
         p.snapshots = {{64, &snapshot}, {64, &snapshot}};
       }},
      {"snapshots",
       [&](Parts& p) {
         p.snapshots.assign(kMaxSnapshots + 1, {64, &snapshot});
       }},
  };
  for (const auto& [word, fault] : faults) {
    Parts p;
    fault(p);
    p.sequences[0].snapshots = p.snapshots;
    try {
      p.validate();
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what() << " lacks " << word;
    }
  }
}

TEST(ForwardBatch, NeedsPools) {
  Parts p;
  EXPECT_THROW((ForwardBatch{p.ids, p.cu_seqlens, p.sequences, p.rows, nullptr}.validate(10)), Error);
}

TEST(ForwardBatch, DecodeTakesNoSnapshots) {
  Parts p;
  StateSnapshot snapshot;
  p.snapshots = {{64, &snapshot}};
  p.sequences[1].snapshots = p.snapshots;
  EXPECT_THROW(p.validate(), Error);
}

}  // namespace
}  // namespace kilin

// What taps are shown of batches that traces never make: empty spans, mixed modes, snapshots on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/compare.h"
#include "support/golden.h"
#include "support/ids.h"
#include "support/model_runner.h"

namespace kilin {
namespace {

using testing::ModelRunner;
using testing::some_ids;
using testing::TestSequence;

// Wants some values; keeps the shapes of those of single sequences, empty where there is no part.
class Wanting final : public Taps {
 public:
  explicit Wanting(std::vector<Site> sites) : sites_(std::move(sites)) {}
  bool wants(const Site& site) override { return std::find(sites_.begin(), sites_.end(), site) != sites_.end(); }
  void at(const Site& site, TensorView) override { ++shown[static_cast<size_t>(site.value)]; }
  void at_sequences(const Site& site, std::span<const TensorView> parts) override {
    for (const TensorView& part : parts)
      shapes[static_cast<size_t>(site.value)].push_back(part.data() == nullptr ? Shape() : part.shape());
  }
  const std::vector<Shape>& shapes_of(Value value) { return shapes[static_cast<size_t>(value)]; }

  std::map<size_t, std::vector<Shape>> shapes;
  std::map<size_t, size_t> shown;

 private:
  std::vector<Site> sites_;
};

TEST(Taps, PartsOfABatchStandInItsOrderAndEmptySpansHaveNone) {
  ModelRunner r(testing::in_repository("models/tiny"));
  TestSequence old = r.fresh(), fresh = r.fresh(), idle = r.fresh();
  r.run({{&old, ForwardMode::Extend, some_ids(5, 1)}});
  Wanting taps({{Value::StateInput, 1},
                {Value::StateOutput, 1},
                {Value::ConvState, 1},
                {Value::AttentionQueries, 3},
                {Value::AttentionKeys, 3},
                {Value::AttentionScores, 3}});
  r.run({{&old, ForwardMode::Decode, {7}}, {&idle, ForwardMode::Extend, {}}, {&fresh, ForwardMode::Extend, some_ids(3, 2)}},
        &taps);
  const Shape none, state = {4, 64, 64}, tail = {3, 768};
  EXPECT_EQ(taps.shapes_of(Value::StateInput), (std::vector<Shape>{state, none, state}));
  EXPECT_EQ(taps.shapes_of(Value::StateOutput), (std::vector<Shape>{state, none, state}));
  EXPECT_EQ(taps.shapes_of(Value::ConvState), (std::vector<Shape>{tail, none, tail}));
  EXPECT_EQ(taps.shapes_of(Value::AttentionQueries), (std::vector<Shape>{{4, 1, 96}, none, {4, 3, 96}}));
  EXPECT_EQ(taps.shapes_of(Value::AttentionKeys), (std::vector<Shape>{{4, 6, 96}, none, {4, 3, 96}}));
  EXPECT_EQ(taps.shapes_of(Value::AttentionScores), (std::vector<Shape>{{4, 1, 6}, none, {4, 3, 3}}));
}

TEST(Taps, WhatIsNotWantedIsNotFormed) {
  ModelRunner r(testing::in_repository("models/tiny"));
  Wanting taps({});
  const std::vector<float> logits = r.prefill(some_ids(70, 3), &taps);
  EXPECT_BYTES_EQ(logits, r.prefill(some_ids(70, 3)));
  EXPECT_TRUE(taps.shapes.empty());
  for (Value value : {Value::States, Value::ExpertOutputs}) EXPECT_FALSE(taps.shown.contains(static_cast<size_t>(value)));
  EXPECT_EQ(taps.shown[static_cast<size_t>(Value::Decays)], 4u);
}

TEST(Taps, StagedLayersAttendInEitherModeAsTheOthersDo) {
  ModelRunner r(testing::in_repository("models/tiny"));
  const std::vector<int32_t> ids = some_ids(600, 4);  // more than a block of keys
  Wanting taps({{Value::AttentionScores, 3}, {Value::AttentionScores, 5}});
  TestSequence plain = r.fresh(), staged = r.fresh();
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode}) {
    const std::vector<float> expected = r.run({{&plain, mode, ids}});
    EXPECT_CLOSE_TO_MAX(r.run({{&staged, mode, ids}}, &taps), expected, 1e-5) << to_string(mode);
  }
}

TEST(Taps, SnapshotsAreLeftWhileStatesAreShown) {
  ModelRunner r(testing::in_repository("models/tiny"));
  std::vector<Site> all;
  for (int layer : {0, 1, 2, 4}) all.push_back({Value::States, layer});
  Wanting taps(all);
  const auto snapshot_of = [&](Taps* with) {
    TestSequence s = r.fresh();
    StateSnapshot snapshot = r.pools().states.blank_snapshot();
    r.run({{&s, ForwardMode::Extend, some_ids(100, 5), {{64, &snapshot}}}}, with);
    return snapshot.values;
  };
  EXPECT_CLOSE_TO_MAX(snapshot_of(&taps), snapshot_of(nullptr), 1e-5);
  EXPECT_EQ(taps.shown[static_cast<size_t>(Value::States)], 4u);
}

}  // namespace
}  // namespace kilin

// An attention layer that runs alone refuses what would spoil a sequence's past, and nothing has moved then: not a byte of any
// state, convolution tail or latent.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/error.h"
#include "support/compare.h"
#include "support/kda_layer.h"
#include "support/mla_layer.h"
#include "support/naive_layers.h"

namespace kilin {
namespace {

using testing::KdaLayer;
using testing::MlaLayer;

constexpr size_t kHidden = 24;

// Two sequences of five and three tokens behind a past of 60 that both have: right in every part. Faults break the second, so
// that a layer which went on from sequence to sequence would have moved the first.
struct Parts {
  std::vector<size_t> cu_seqlens = {0, 5, 8};
  std::vector<SequenceSpan> spans;
  std::vector<SnapshotRequest> snapshots;
  MemoryPools* pools;
};
using Fault = std::function<void(Parts&)>;

struct Case {
  const char* word;  // of the message
  ErrorCode code;
  Fault fault;
};

std::vector<Case> faults_of_any_layer() {
  const auto mode = [](ForwardMode m) { return [m](Parts& p) { p.spans[1].mode = m; }; };
  const auto cuts = [](std::vector<size_t> cu) { return [cu](Parts& p) { p.cu_seqlens = cu; }; };
  return {
      {"TargetVerify", ErrorCode::NotImplemented, mode(ForwardMode::TargetVerify)},
      {"DraftExtend", ErrorCode::NotImplemented, mode(ForwardMode::DraftExtend)},
      {"Idle", ErrorCode::InvalidArgument, mode(ForwardMode::Idle)},
      {"mode 77", ErrorCode::InvalidArgument, mode(static_cast<ForwardMode>(77))},
      {"cu_seqlens", ErrorCode::InvalidArgument, cuts({0, 5})},
      {"cu_seqlens", ErrorCode::InvalidArgument, cuts({})},
      {"cu_seqlens", ErrorCode::InvalidArgument, cuts({0, 5, 7})},
      {"cu_seqlens", ErrorCode::InvalidArgument, cuts({0, 5, 9})},
      {"cu_seqlens", ErrorCode::InvalidArgument, cuts({1, 5, 8})},
      {"descends", ErrorCode::InvalidArgument, cuts({0, 9, 8})},
      {"no pools", ErrorCode::InvalidArgument, [](Parts& p) { p.pools = nullptr; }},
  };
}

// A layer with a past, and what it does with a batch.
template <typename Layer, typename Forward>
void expect_refused(Layer& layer, const std::vector<Case>& cases, Forward&& forward) {
  layer.run(testing::made_up_values(140 * kHidden, 1), {0, 70, 140}, ForwardMode::Extend);  // 60, and what comes anew
  const std::vector<float> x = testing::made_up_values(8 * kHidden, 2);
  const std::vector<std::byte> before = layer.memory();
  for (const Case& c : cases) {
    Parts parts = {.spans = layer.spans(ForwardMode::Extend, 60), .snapshots = {}, .pools = &layer.pools};
    c.fault(parts);
    parts.spans[1].snapshots = parts.snapshots;
    try {
      layer.LayerBench::run(x, parts.cu_seqlens, parts.spans, [&](ExecContext& ctx, ForwardBatch batch, auto in, auto out) {
        batch.pools = parts.pools;
        forward(ctx, batch, in, out);
      });
      ADD_FAILURE() << "accepted: " << c.word;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), c.code) << error.what();
      EXPECT_NE(std::string(error.what()).find(c.word), std::string::npos) << error.what() << " lacks " << c.word;
    }
    EXPECT_BYTES_EQ(layer.memory(), before) << c.word;
  }
  Parts right = {.spans = layer.spans(ForwardMode::Extend, 60), .snapshots = {}, .pools = &layer.pools};
  layer.run_spans(x, right.cu_seqlens, right.spans);
  EXPECT_FALSE(testing::same_bytes_of(layer.memory(), before)) << "a batch without a fault moves the memory";
}

std::vector<Case> faults_of_a_kda_layer(StateSnapshot& foreign, StateSnapshot& snapshot) {
  std::vector<Case> cases = faults_of_any_layer();
  const auto slot = [](StateSlot s) { return [s](Parts& p) { p.spans[1].state_slot = s; }; };
  const auto snapshots = [](std::vector<SnapshotRequest> s) { return [s](Parts& p) { p.snapshots = s; }; };
  for (const Case& c : std::vector<Case>{
           {"state slot 0", ErrorCode::InvalidArgument, slot(RecurrentStatePool::kDummySlot)},
           {"state slot 4", ErrorCode::InvalidArgument, slot(4)},
           {"state slot 4294967295", ErrorCode::InvalidArgument, slot(std::numeric_limits<StateSlot>::max())},
           {"share state slot", ErrorCode::InvalidArgument, [](Parts& p) { p.spans[1].state_slot = p.spans[0].state_slot; }},
           {"position 63", ErrorCode::InvalidArgument, snapshots({{63, &snapshot}})},
           {"position 128", ErrorCode::InvalidArgument, snapshots({{128, &snapshot}})},
           {"not one of this pool", ErrorCode::InvalidArgument,
            [&foreign](Parts& p) {
              p.spans[1].start = 62;
              p.snapshots = {{64, &foreign}};
            }},
           {"takes no snapshots", ErrorCode::InvalidArgument,
            [&snapshot](Parts& p) {
              p.spans[1].mode = ForwardMode::Decode;
              p.snapshots = {{64, &snapshot}};
            }},
       })
    cases.push_back(c);
  return cases;
}

// Both doors: the layer, and the backend behind it, which others may call with projections of their own.
TEST(KimiDeltaAttention, RefusesWhatWouldSpoilStatesWithNoByteMoved) {
  const ModelConfig config = testing::kda_config(kHidden, 2, 20);
  testing::MadeUpWeights weights;
  testing::add_kda(weights, "", config);
  KdaLayer layer(weights, config, 2);
  StateSnapshot foreign, snapshot = layer.pools.states.blank_snapshot();
  expect_refused(layer, faults_of_a_kda_layer(foreign, snapshot), [&](auto& ctx, auto& batch, auto in, auto out) {
    layer.attention.forward(ctx, layer.backend, batch, in, out);
  });
}

TEST(KdaBackend, RefusesWhatWouldSpoilStatesWithNoByteMoved) {
  const ModelConfig config = testing::kda_config(kHidden, 2, 20);
  testing::MadeUpWeights weights;
  testing::add_kda(weights, "", config);
  KdaLayer layer(weights, config, 2);
  StateSnapshot foreign, snapshot = layer.pools.states.blank_snapshot();
  const std::vector<float> conv = testing::made_up_values(4 * 120, 3), A_log(2, 1.f), dt_bias(40, -4.f), o_norm(20, 1.f);
  const KdaParameters parameters = {.heads = 2,
                                    .head_dim = 20,
                                    .conv = {conv.data(), 4, 120},
                                    .A_log = A_log.data(),
                                    .dt_bias = dt_bias.data(),
                                    .o_norm = o_norm.data(),
                                    .eps = 1e-5f};
  const auto forward = [&](ExecContext& ctx, const ForwardBatch& batch, size_t state_layer, const KdaParameters& p) {
    Workspace::Frame frame(ctx.workspace);
    layer.backend.forward(
        ctx, batch, 0, state_layer, p,
        {.qkv = frame.matrix(8, 120), .f = frame.matrix(8, 40), .b = frame.matrix(8, 2), .gate = frame.matrix(8, 40)},
        frame.matrix(8, 40));
  };
  expect_refused(layer, faults_of_a_kda_layer(foreign, snapshot),
                 [&](auto& ctx, auto& batch, auto, auto) { forward(ctx, batch, 0, parameters); });

  const std::vector<Case> any = {{"the pool has", ErrorCode::InvalidArgument, [](Parts&) {}}};
  KdaParameters narrow = parameters, short_conv = parameters;
  narrow.head_dim = 10, narrow.heads = 4;
  short_conv.conv = {conv.data(), 3, 120};
  expect_refused(layer, any, [&](auto& ctx, auto& batch, auto, auto) { forward(ctx, batch, 1, parameters); });
  expect_refused(layer, any, [&](auto& ctx, auto& batch, auto, auto) { forward(ctx, batch, 0, narrow); });
  expect_refused(layer, any, [&](auto& ctx, auto& batch, auto, auto) { forward(ctx, batch, 0, short_conv); });
}

TEST(KimiMlaAttention, RefusesWhatWouldSpoilLatentsWithNoByteMoved) {
  const ModelConfig config = testing::mla_config({kHidden, 2, 16, 8, 4, 12});
  testing::MadeUpWeights weights;
  testing::add_mla(weights, "", config);
  MlaLayer layer(weights, config, 2, 70);
  std::vector<Case> cases = faults_of_any_layer();
  const PageId beyond = 5, pages[] = {0, beyond};
  cases.push_back({"1 pages hold 64", ErrorCode::InvalidArgument, [](Parts& p) {
                     p.spans[1].pages = p.spans[1].pages.first(1);
                     p.spans[1].start = 62;
                   }});
  cases.push_back({"0 pages hold 0", ErrorCode::InvalidArgument, [](Parts& p) { p.spans[1].pages = {}; }});
  cases.push_back({"page 5", ErrorCode::InvalidArgument, [&](Parts& p) { p.spans[1].pages = pages; }});
  cases.push_back(
      {"pages hold 128", ErrorCode::InvalidArgument, [](Parts& p) { p.spans[1].start = std::numeric_limits<size_t>::max(); }});
  const auto forward = [&](auto& ctx, auto& batch, auto in, auto out) { layer.attention.forward(ctx, batch, in, out); };
  expect_refused(layer, cases, forward);

  const std::vector<Case> any = {{"the pool has", ErrorCode::InvalidArgument, [](Parts&) {}}};
  const ModelConfig wide = testing::mla_config({kHidden, 2, 20, 8, 4, 12});
  testing::MadeUpWeights wide_weights;
  testing::add_mla(wide_weights, "", wide);
  WeightSource wide_source = testing::source_of(wide_weights), source = testing::source_of(weights);
  for (const auto& other :
       {KimiMlaAttention::load(wide_source, "", wide, 0, 0), KimiMlaAttention::load(source, "", config, 0, 1)})
    expect_refused(layer, any, [&](auto& ctx, auto& batch, auto in, auto out) { other.forward(ctx, batch, in, out); });
}

// Idle is a rank's part of a batch with no tokens for it.
TEST(Attention, IdleSpansAndBatchesWithoutTokensTouchNothing) {
  const ModelConfig kda = testing::kda_config(kHidden, 2, 20), mla = testing::mla_config({kHidden, 2, 16, 8, 4, 12});
  testing::MadeUpWeights weights;
  testing::add_kda(weights, "kda.", kda);
  testing::add_mla(weights, "", mla);
  testing::MadeUpWeights kda_weights;
  testing::add_kda(kda_weights, "", kda);
  KdaLayer kda_layer(kda_weights, kda, 2);
  MlaLayer mla_layer(weights, mla, 2, 70);
  const std::vector<float> past = testing::made_up_values(10 * kHidden, 1);
  const auto expect_untouched = [&](auto& layer) {
    layer.run(past, {0, 5, 10}, ForwardMode::Extend);
    const std::vector<std::byte> before = layer.memory();
    std::vector<SequenceSpan> idle = layer.spans(ForwardMode::Idle, 5);
    idle[0].state_slot = RecurrentStatePool::kDummySlot;  // what a span without tokens may carry
    idle[1].pages = {};
    EXPECT_TRUE(layer.run_spans({}, {0, 0, 0}, idle).empty());
    EXPECT_TRUE(layer.run_spans({}, {0, 0, 0}, layer.spans(ForwardMode::Extend, 5)).empty());
    EXPECT_TRUE(layer.run_spans({}, {0, 0, 0}, layer.spans(ForwardMode::Decode, 5)).empty());
    EXPECT_TRUE(layer.run_spans({}, {0}, {}).empty());
    EXPECT_BYTES_EQ(layer.memory(), before);
  };
  expect_untouched(kda_layer);
  expect_untouched(mla_layer);
}

}  // namespace
}  // namespace kilin

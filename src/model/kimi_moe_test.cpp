// The mixture of experts alone: against loops in double over odd shapes, and the rules of its router as they show in its sum.
#include "model/kimi_moe.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/compare.h"
#include "support/layer_bench.h"
#include "support/naive_layers.h"
#include "support/recorder.h"

namespace kilin {
namespace {

using testing::MadeUpWeights;
using Floats = std::vector<float>;

constexpr double kTolerance = 5e-6;

ModelConfig moe_config(size_t hidden, size_t width, size_t experts, size_t chosen, size_t groups = 1, size_t top_groups = 1) {
  ModelConfig c;
  c.hidden_size = hidden;
  c.moe_intermediate_size = width;
  c.num_experts = experts;
  c.num_experts_per_token = chosen;
  c.num_shared_experts = 1;
  c.moe_renormalize = true;
  c.routed_scaling_factor = 2.446;
  c.num_expert_group = groups;
  c.topk_group = top_groups;
  c.short_conv_kernel_size = 1;  // of no layer here; the bench's pools need one
  return c;
}

MadeUpWeights weights_of(const ModelConfig& config) {
  MadeUpWeights weights;
  testing::add_moe(weights, "", config);
  return weights;
}

Floats run(const MadeUpWeights& weights, const ModelConfig& config, const Floats& x, size_t threads = 2, Taps* taps = nullptr) {
  WeightSource source = testing::source_of(weights);
  const KimiMoe moe = KimiMoe::load(source, "", config, 0);
  testing::LayerBench bench(config, 0, 0, {.threads = threads});
  const size_t cu_seqlens[] = {0};
  const auto forward = [&](ExecContext& ctx, const ForwardBatch&, MatView<const float> in, MatView<float> out) {
    Workspace::Frame frame(ctx.workspace);
    moe.forward(ctx, ActivationRows(ctx, frame, in), out);
  };
  return bench.run(x, cu_seqlens, {}, forward, taps);
}

Floats naive(const MadeUpWeights& weights, const ModelConfig& config, const Floats& x) {
  return testing::rounded(testing::naive_moe(weights, "", config, {x.begin(), x.end()}));
}

TEST(KimiMoe, AgreesWithALoopInFp64) {
  ModelConfig raw = moe_config(20, 7, 6, 2), two_shared = moe_config(33, 12, 5, 5);
  raw.moe_renormalize = false;
  two_shared.num_shared_experts = 2;
  for (const ModelConfig& config : {moe_config(24, 16, 8, 3), moe_config(17, 9, 5, 1), moe_config(40, 31, 12, 4, 4, 2),
                                    moe_config(24, 8, 3, 3), moe_config(16, 16, 70, 8), raw, two_shared})
    for (size_t tokens : {1, 3, 130}) {
      const MadeUpWeights weights = weights_of(config);
      const Floats x = testing::made_up_values(tokens * config.hidden_size, tokens);
      EXPECT_CLOSE_TO_MAX(run(weights, config, x), naive(weights, config, x), kTolerance)
          << config.num_experts << " experts, " << tokens << " tokens";
    }
}

TEST(KimiMoe, GivesTiesToTheLowerId) {
  const ModelConfig config = moe_config(24, 16, 9, 4);
  MadeUpWeights weights = weights_of(config);
  weights.set("gate.weight", {9, 24}, Floats(9 * 24, 0.f));
  weights.set("gate.e_score_correction_bias", {9}, {0, 0, 0, 0, 0, 0, 0.5f, 0, 0});
  testing::Recorder recorder;
  run(weights, config, testing::made_up_values(2 * 24, 1), 2, &recorder);
  EXPECT_EQ(recorder.values(Value::ExpertIndices, 0), (Floats{0, 1, 2, 6, 0, 1, 2, 6}));
}

TEST(KimiMoe, TheBiasChoosesAndWeighsNothing) {
  const ModelConfig config = moe_config(24, 16, 6, 6);  // all are chosen, whatever the bias
  MadeUpWeights weights = weights_of(config);
  const Floats x = testing::made_up_values(5 * 24, 1);
  weights.set("gate.e_score_correction_bias", {6}, Floats(6, 0.f));
  const Floats without = run(weights, config, x);
  weights.set("gate.e_score_correction_bias", {6}, {9, -9, 3, 0.5f, -1, 2});
  EXPECT_BYTES_EQ(run(weights, config, x), without);

  const ModelConfig one = moe_config(24, 16, 6, 1);
  testing::Recorder recorder;
  run(weights, one, x, 2, &recorder);
  EXPECT_EQ(recorder.values(Value::ExpertIndices, 0), Floats(5, 0.f));  // the bias of 9
}

// All choices are below 0 here: groups masked with 0 would win.
TEST(KimiMoe, MaskedGroupsLoseToAnyChoice) {
  const ModelConfig config = moe_config(24, 16, 8, 2, 4, 1);
  MadeUpWeights weights = weights_of(config);
  weights.set("gate.e_score_correction_bias", {8}, {-5, -5, -3, -3, -4, -4, -6, -6});
  const Floats x = testing::made_up_values(7 * 24, 1);
  testing::Recorder recorder;
  EXPECT_CLOSE_TO_MAX(run(weights, config, x, 2, &recorder), naive(weights, config, x), kTolerance);
  for (float id : recorder.values(Value::ExpertIndices, 0)) EXPECT_TRUE(id == 2 || id == 3) << id;
}

TEST(KimiMoe, GivesRowsTheSameBytesAloneOrTogetherOnAnyNumberOfThreads) {
  const ModelConfig config = moe_config(40, 24, 5, 2);
  const MadeUpWeights weights = weights_of(config);
  const Floats x = testing::made_up_values(200 * 40, 2);  // an expert gets more rows than a tile holds
  const Floats together = run(weights, config, x, 1);
  for (size_t threads : {2, 5}) EXPECT_BYTES_EQ(run(weights, config, x, threads), together) << threads;
  for (size_t t : {0, 1, 63, 64, 199}) {
    const auto at = static_cast<ptrdiff_t>(t * 40);
    EXPECT_BYTES_EQ(run(weights, config, Floats(x.begin() + at, x.begin() + at + 40)),
                    Floats(together.begin() + at, together.begin() + at + 40))
        << t;
  }
}

}  // namespace
}  // namespace kilin

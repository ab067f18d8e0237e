#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "checkpoint/checkpoint.h"
#include "support/configs.h"
#include "support/golden.h"
#include "weights/weight_source.h"

namespace kilin {
namespace {

ModelConfig published() { return ModelConfig::parse(testing::published_config().dump(), "config.json"); }

TEST(MemoryPlan, HasThePublishedModelsFigures) {
  const MemoryPlan f32 = plan_memory(published(), 98'245'528'576, {.kv_type = KvType::f32, .pool_tokens = 4096});
  const MemoryPlan bf16 = plan_memory(published(), 98'245'528'576, {.kv_type = KvType::bf16, .pool_tokens = 1 << 20});
  EXPECT_EQ(f32.state_per_sequence, 20u * (32 * 128 * 128 + 3 * 12288) * 4);  // 44.9 MB
  EXPECT_EQ(bf16.latents_per_token, 8064u);
  EXPECT_EQ(f32.latents_per_token, 2 * 8064u);
  EXPECT_EQ(f32.latents, 4096u * 2 * 8064);
  EXPECT_EQ(bf16.latents, (uint64_t{1} << 20) * 8064);
  EXPECT_EQ(f32.working(), f32.states + f32.latents + f32.workspace);
  EXPECT_EQ(f32.total(), 98'245'528'576 + f32.working());
}

TEST(MemoryPlan, ItsWorkspaceIsThatOfTheLoadedModel) {
  const auto folder = testing::in_repository("models/tiny");
  const ModelConfig config = ModelConfig::read(folder);
  WeightSource source = WeightSource::open(Checkpoint::open(folder), config);
  const auto model = KimiLinearForCausalLM::load(source, config);
  for (size_t chunk : {1u, 64u, 2048u}) {
    const MemoryPlan plan = plan_memory(config, 0, {.sequences = 3, .prefill_chunk = chunk, .threads = 2});
    EXPECT_EQ(plan.workspace, plan_memory(model, 0, {.sequences = 3, .prefill_chunk = chunk, .threads = 2}).workspace) << chunk;
    EXPECT_GT(plan.workspace, 0u);
  }
}

TEST(MemoryPlan, WithoutAnActivationTypeItsWorkspaceIsThatOfTheOneThatTakesMost) {
  const auto workspace = [](std::optional<ActivationType> activations) {
    return plan_memory(published(), 0, {.prefill_chunk = 256, .activations = activations}).workspace;
  };
  uint64_t most = 0;
  for (ActivationType type : kActivationTypes) most = std::max(most, workspace(type));
  EXPECT_EQ(workspace({}), most);
}

TEST(MemoryPlan, EachSequenceTakesAStateAndAtMostAPage) {
  const ModelConfig config = published();
  const MemoryPlan one = plan_memory(config, 0, {.sequences = 1, .pool_tokens = 640});
  const MemoryPlan ten = plan_memory(config, 0, {.sequences = 10, .pool_tokens = 640});
  EXPECT_EQ(ten.states, 10 * one.states);
  EXPECT_EQ(ten.latents - one.latents, 9 * 64 * one.latents_per_token);
}

TEST(MemoryPlan, ASumBeyond64BitsIsTheLargestNumber) {
  const MemoryPlan plan = plan_memory(published(), std::numeric_limits<uint64_t>::max() - 1,
                                      {.pool_tokens = std::numeric_limits<size_t>::max() - 64});
  EXPECT_EQ(plan.latents, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(plan.total(), std::numeric_limits<uint64_t>::max());
}

TEST(MemoryPlan, TellsWhatIsShort) {
  MemoryPlan plan;
  plan.weights = 100;
  plan.states = 20;
  plan.latents = 20;
  plan.workspace = 10;
  EXPECT_EQ(fit_of(plan, {.total = 200, .available = 150}), MemoryFit::Fits);
  EXPECT_EQ(fit_of(plan, {.total = 150, .available = 149}), MemoryFit::NeedsMoreFree);
  EXPECT_EQ(fit_of(plan, {.total = 149, .available = 149}), MemoryFit::WeightsFromDisk);
  EXPECT_EQ(fit_of(plan, {.total = 50, .available = 0}), MemoryFit::WeightsFromDisk);
  EXPECT_EQ(fit_of(plan, {.total = 49, .available = 49}), MemoryFit::TooLarge);
}

}  // namespace
}  // namespace kilin

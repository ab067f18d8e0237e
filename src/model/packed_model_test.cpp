// A whole model from weights in blocks: what it takes of the packs that were planned.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "model/kimi_linear_for_causal_lm.h"
#include "support/block_store.h"

namespace kilin {
namespace {

TEST(PackedModel, TakesEveryPlannedPackAndGivesTheirSourcesBack) {
  const ModelConfig config = ModelConfig::read(testing::in_repository("models/tiny"));
  const auto store = std::make_shared<testing::BlockStore>(config);
  WeightSource source = WeightSource::open(store, config);
  KimiLinearForCausalLM::load(source, config);
  EXPECT_TRUE(source.packs()->is_complete());
  size_t bytes = 0, packed = 0;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    const WeightUse use = tensor.pattern->use;
    if (!is_product(use)) continue;
    ++packed;
    bytes += store->require(tensor.name).bytes.size();
  }
  EXPECT_EQ(source.plan()->packs().size(), packed);
  for (size_t layer : {3u, 5u})  // kv_b_proj, whose copy replaces it
    bytes += store->require(fmt::format("model.layers.{}.self_attn.kv_b_proj.weight", layer)).bytes.size();
  EXPECT_EQ(store->released(), bytes);
}

}  // namespace
}  // namespace kilin

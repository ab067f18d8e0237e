#include "synthetic/synthetic_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/model_config.h"
#include "support/configs.h"

namespace kilin {
namespace {

using testing::in_transformers_form;
using testing::published_config;

ModelConfig cut(const Json& config, const SyntheticShape& shape) {
  return ModelConfig::parse(synthetic_config(config.dump(), "config.json", shape), "cut");
}

TEST(SyntheticConfig, WithoutOptionsItIsTheSameModel) {
  for (const Json& config : {published_config(), in_transformers_form(published_config())})
    EXPECT_EQ(cut(config, {}), ModelConfig::parse(config.dump(), "config.json"));
}

TEST(SyntheticConfig, TwoLayersKeepBothKindsOfAttentionAndOfFeedForward) {
  for (const Json& config : {published_config(), in_transformers_form(published_config())}) {
    const ModelConfig c = cut(config, {.layers = 2, .experts = 8});
    EXPECT_EQ(c.attention_kinds, (std::vector{AttentionKind::Kda, AttentionKind::Mla}));
    EXPECT_EQ(c.feed_forward_kinds, (std::vector{FeedForwardKind::Dense, FeedForwardKind::Moe}));
    EXPECT_EQ(c.num_experts, 8u);
    EXPECT_EQ(c.num_experts_per_token, 8u);
    EXPECT_EQ(c.hidden_size, 2304u);
  }
}

TEST(SyntheticConfig, AnyNumberOfLayersAndExpertsIsAModel) {
  for (const Json& config : {published_config(), in_transformers_form(published_config())})
    for (size_t layers : {1u, 2u, 3u, 4u, 5u, 26u, 27u})
      for (size_t experts : {1u, 7u, 256u}) {
        const ModelConfig c = cut(config, {.layers = layers, .experts = experts});
        EXPECT_EQ(c.num_hidden_layers, layers);
        EXPECT_EQ(c.num_experts, experts);
        EXPECT_EQ(c.num_experts_per_token, std::min<size_t>(8, experts));
        EXPECT_TRUE(c.is_moe(layers - 1));
        if (layers > 1) {
          EXPECT_EQ(c.mla_layers() > 0, true);
          EXPECT_EQ(c.kda_layers() > 0, true);
        }
      }
}

TEST(SyntheticConfig, SaysItsDtype) {
  EXPECT_EQ(cut(published_config(), {.dtype = DType::f32}).dtype, "float32");
  EXPECT_EQ(cut(published_config(), {.dtype = DType::bf16}).dtype, "bfloat16");
}

TEST(SyntheticConfig, NamesNoPythonFilesThatDoNotComeAlong) {
  ASSERT_TRUE(published_config().contains("auto_map"));
  EXPECT_EQ(synthetic_config(published_config().dump(), "config.json", {}).find("auto_map"), std::string::npos);
}

TEST(SyntheticConfig, RefusesWhatCannotBe) {
  const auto code = [](const Json& config, const SyntheticShape& shape) {
    try {
      synthetic_config(config.dump(), "config.json", shape);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::NotImplemented;
  };
  EXPECT_EQ(code(published_config(), {.layers = 28}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code(published_config(), {.layers = 0}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code(published_config(), {.experts = 0}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code(published_config(), {.dtype = DType::f16}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code(published_config(), {.experts = size_t{1} << 40}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code(published_config(), {.experts = 257}), ErrorCode::InvalidArgument);
  Json grouped = published_config();
  grouped["num_expert_group"] = 4;
  grouped["topk_group"] = 2;
  EXPECT_EQ(code(grouped, {.experts = 9}), ErrorCode::Corrupt);
  Json other = published_config();
  other["hidden_size"] = -1;
  EXPECT_EQ(code(other, {}), ErrorCode::Corrupt);
}

}  // namespace
}  // namespace kilin

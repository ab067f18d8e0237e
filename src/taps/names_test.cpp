#include "taps/names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

using Attention = BlockKind::Attention;
using FeedForward = BlockKind::FeedForward;

// A dense KDA block, then a KDA and an MLA block with experts, then a dense MLA block.
const std::vector<BlockKind> kBlocks = {{Attention::Kda, FeedForward::Dense},
                                        {Attention::Kda, FeedForward::Moe},
                                        {Attention::Mla, FeedForward::Moe},
                                        {Attention::Mla, FeedForward::Dense}};

std::string refusal(std::string_view name, ErrorCode code) {
  try {
    find_site(name, kBlocks);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << name;
    return error.what();
  }
}

TEST(Names, AValueOfALayerSaysWhichBlockHoldsIt) {
  EXPECT_EQ(name_of({Value::Decays, 0}, kBlocks), "layers.0.linear_attn.decays");
  EXPECT_EQ(name_of({Value::AttentionInput, 2}, kBlocks), "layers.2.self_attn.input");
  EXPECT_EQ(name_of({Value::MlpInput, 2}, kBlocks), "layers.2.mlp.input");
  EXPECT_EQ(name_of({Value::LayerOutput, 3}, kBlocks), "layers.3.layer_output");
  EXPECT_EQ(name_of({Value::Norm}, kBlocks), "norm");
}

TEST(Names, EveryOfferedNameLeadsBackToItsSiteAndNoTwoShareOne) {
  std::set<std::string> names;
  for (const OfferedValue& offered : support(kBlocks)) {
    EXPECT_EQ(find_site(offered.name, kBlocks), offered.site) << offered.name;
    EXPECT_TRUE(names.insert(offered.name).second) << offered.name;
    EXPECT_FALSE(offered.shape.empty()) << offered.name;
  }
}

TEST(Names, SupportIsInTheOrderOfThePassAndLeavesOutWhatABlockHasNot) {
  const std::vector<OfferedValue> offered = support(kBlocks);
  for (size_t i = 1; i < offered.size(); ++i)
    EXPECT_TRUE(passes_before(offered[i - 1].site, offered[i].site)) << offered[i].name;
  const auto has = [&](std::string_view name) {
    for (const OfferedValue& o : offered)
      if (o.name == name) return true;
    return false;
  };
  EXPECT_TRUE(has("layers.1.linear_attn.states"));
  EXPECT_FALSE(has("layers.2.linear_attn.states"));
  EXPECT_TRUE(has("layers.2.self_attn.attention_scores"));
  EXPECT_FALSE(has("layers.0.mlp.router_logits"));
  EXPECT_TRUE(has("layers.0.mlp.gate_proj.output"));
}

TEST(Names, ShapesAndStagesAreThoseOfTheBlocksKind) {
  for (const OfferedValue& o : support(kBlocks)) {
    if (o.name == "layers.0.linear_attn.attention_keys") {
      EXPECT_EQ(o.shape, "[S, num_heads, head_dim]");
      EXPECT_FALSE(o.staged);
    }
    if (o.name == "layers.2.self_attn.attention_keys") {
      EXPECT_EQ(o.shape, "[num_attention_heads, K, qk_nope_head_dim + qk_rope_head_dim]");
      EXPECT_TRUE(o.staged);
    }
    if (o.name == "layers.0.linear_attn.states" || o.name == "next_token_probs") {
      EXPECT_FALSE(o.writable) << o.name;
    }
  }
}

TEST(Names, LayersAreWrittenWithDotsOrBrackets) {
  const Site site = {Value::AttentionScores, 2};
  EXPECT_EQ(find_site("layers.2.self_attn.attention_scores", kBlocks), site);
  EXPECT_EQ(find_site("layers[2].self_attn.attention_scores", kBlocks), site);
  EXPECT_EQ(find_site("model.layers.2.self_attn.attention_scores", kBlocks), site);
}

TEST(Names, TheCheckpointsPathsReachTheSameValues) {
  EXPECT_EQ(find_site("model.layers.0.self_attn.f_b_proj.output", kBlocks), (Site{Value::FBProj, 0}));
  EXPECT_EQ(find_site("model.layers.0.self_attn.input", kBlocks), (Site{Value::AttentionInput, 0}));
  EXPECT_EQ(find_site("model.layers.1.block_sparse_moe.gate.output", kBlocks), (Site{Value::RouterLogits, 1}));
  EXPECT_EQ(find_site("layers.1.mlp.router.output", kBlocks), (Site{Value::RouterLogits, 1}));
  EXPECT_EQ(find_site("model.layers.2.self_attn.o_proj.output", kBlocks), (Site{Value::AttentionOutput, 2}));
  EXPECT_EQ(find_site("model.layers.3.mlp.down_proj.output", kBlocks), (Site{Value::MlpOutput, 3}));
  EXPECT_EQ(find_site("model.layers.2.input_layernorm.output", kBlocks), (Site{Value::AttentionInput, 2}));
  EXPECT_EQ(find_site("model.embed_tokens.output", kBlocks), Site{Value::TokenEmbeddings});
  EXPECT_EQ(find_site("lm_head.output", kBlocks), Site{Value::Logits});
  EXPECT_EQ(find_site("model.layers.1.block_sparse_moe.shared_experts.down_proj.output", kBlocks),
            (Site{Value::SharedExpertOutput, 1}));
}

TEST(Names, WhatABlockHasNotIsUnavailableAndTheMessageSaysWhy) {
  const auto message = [](std::string_view name) { return refusal(name, ErrorCode::Unavailable); };
  EXPECT_EQ(message("layers[0].self_attn.attention_scores"),
            "layers[0].self_attn.attention_scores is not available: block 0 is a KDA block");
  EXPECT_EQ(message("model.layers.0.self_attn.attention_scores"),
            "layers[0].self_attn.attention_scores is not available: block 0 is a KDA block");
  EXPECT_EQ(message("layers.0.linear_attn.kv_b_proj.output"),
            "layers[0].linear_attn.kv_b_proj.output is not available: block 0 is a KDA block");
  EXPECT_EQ(message("layers.0.self_attn.input"),
            "layers[0].self_attn.input is not available: block 0 is a KDA block; it is layers.0.linear_attn.input");
  EXPECT_EQ(message("layers.2.linear_attn.decays"), "layers[2].linear_attn.decays is not available: block 2 is an MLA block");
  EXPECT_EQ(message("layers.2.self_attn.states"), "layers[2].self_attn.states is not available: block 2 is an MLA block");
  EXPECT_EQ(message("layers.0.mlp.router_logits"), "layers[0].mlp.router_logits is not available: block 0 is a dense block");
  EXPECT_EQ(message("layers.3.block_sparse_moe.input"),
            "layers[3].block_sparse_moe.input is not available: block 3 is a dense block; it is layers.3.mlp.input");
  for (const char* name : {"gate_proj", "up_proj", "down_proj"})
    EXPECT_EQ(message(std::string("layers.1.mlp.") + name + ".output"),
              std::string("layers[1].mlp.") + name + ".output is not available: block 1 is a mixture-of-experts block");
}

TEST(Names, EveryValueThatABlockHasNotIsRefusedUnderItsOwnName) {
  size_t refused = 0;
  for (size_t layer = 0; layer < kBlocks.size(); ++layer)
    for (size_t v = 0; v < kValues; ++v) {
      const ValueInfo& info = value_info(static_cast<Value>(v));
      if (info.owner == Owner::Model) continue;
      const std::string name = name_of({info.value, static_cast<int>(layer)}, kBlocks);
      const std::vector<OfferedValue> offered = support(kBlocks);
      const bool has = std::any_of(offered.begin(), offered.end(), [&](const OfferedValue& o) { return o.name == name; });
      if (has) continue;
      const std::string message = refusal(name, ErrorCode::Unavailable);
      EXPECT_NE(message.find("is not available: block " + std::to_string(layer) + " is a"), std::string::npos) << message;
      ++refused;
    }
  EXPECT_GT(refused, 20u);
}

TEST(Names, ANearMissNamesTheNearestOnes) {
  const std::string message = refusal("layers.2.self_attn.atention_score", ErrorCode::NotFound);
  EXPECT_NE(message.find("'layers.2.self_attn.atention_score' names no value"), std::string::npos) << message;
  EXPECT_NE(message.find("layers.2.self_attn.attention_scores"), std::string::npos) << message;
  EXPECT_NE(refusal("logit", ErrorCode::NotFound).find("logits"), std::string::npos);
  EXPECT_NE(refusal("", ErrorCode::NotFound), "");
  EXPECT_NE(refusal("layers.x.layer_input", ErrorCode::NotFound), "");
  EXPECT_EQ(refusal("layers.4.layer_input", ErrorCode::NotFound),
            "layers[4].layer_input: there is no such layer; expected 0 to 3");
  EXPECT_NE(refusal("layers.99999999999999999999999.layer_input", ErrorCode::NotFound), "");
}

TEST(Names, TheFinalValuesPassAfterAllLayersAndTheFirstBefore) {
  EXPECT_TRUE(passes_before({Value::TokenEmbeddings}, {Value::LayerInput, 0}));
  EXPECT_TRUE(passes_before({Value::LayerOutput, 26}, {Value::Norm}));
  EXPECT_TRUE(passes_before({Value::LayerOutput, 2}, {Value::LayerInput, 3}));
  EXPECT_TRUE(passes_before({Value::AttentionOutput, 2}, {Value::MlpOutput, 2}));
  EXPECT_FALSE(passes_before({Value::Norm}, {Value::Norm}));
}

TEST(Names, TheDocumentNamesEveryValue) {
  std::ifstream file(testing::in_repository("docs/inside.md"));
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  for (size_t v = 0; v < kValues; ++v) {
    const std::string name(value_info(static_cast<Value>(v)).name);
    EXPECT_TRUE(document.find("`" + name + "`") != std::string::npos || document.find("." + name + "`") != std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace kilin

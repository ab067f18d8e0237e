#include "gguf/keys.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

ModelConfig golden_config() { return ModelConfig::read(testing::in_repository("tests/golden/tiny-kimi-linear")); }

TEST(GgufKeys, NameAsManyEndsOfAnswersAsThereAre) {
  constexpr const char* kEos = "tokenizer.ggml.eos_token_id";
  constexpr const char* kEot = "tokenizer.ggml.eot_token_id";
  ModelConfig config = golden_config();
  for (const std::vector<int32_t>& ends : {std::vector<int32_t>{}, {7}, {7, 8}, {7, 8, 9}}) {
    config.eos_token_ids = ends;
    const GgufKeys keys = gguf_keys(config, "x", std::nullopt);
    EXPECT_EQ(keys.contains(kEos), !ends.empty());
    EXPECT_EQ(keys.contains(kEot), ends.size() > 1);
  }
}

TEST(GgufKeys, RefuseAModelThatTheyCannotDescribe) {
  const auto refusal = [](const ModelConfig& config) {
    try {
      gguf_keys(config, "x", std::nullopt);
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Unsupported);
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal(golden_config()), "");
  ModelConfig heads = golden_config();
  heads.kda_num_heads = heads.num_attention_heads + 1;
  EXPECT_NE(refusal(heads).find("heads in KDA layers"), std::string::npos);
  ModelConfig groups = golden_config();
  groups.num_expert_group = 2;
  EXPECT_NE(refusal(groups).find("2 groups of experts"), std::string::npos);
  ModelConfig dense = golden_config();
  dense.feed_forward_kinds.back() = FeedForwardKind::Dense;
  EXPECT_NE(refusal(dense).find("is dense and stands behind layers with experts"), std::string::npos);
}

}  // namespace
}  // namespace kilin

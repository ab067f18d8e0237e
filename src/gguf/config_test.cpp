#include "gguf/config.h"

#include <gtest/gtest.h>

#include "checkpoint/gguf_file.h"
#include "core/error.h"
#include "support/golden.h"
#include "support/mini_gguf.h"

namespace kilin {
namespace {

using testing::GgufBuilder;
using testing::mini_gguf;

ModelConfig config_of(const GgufBuilder& file) {
  const testing::TemporaryFolder folder;
  file.write(folder / "m.gguf");
  const auto gguf = GgufFile::open(folder / "m.gguf");
  return read_gguf_config(gguf->metadata(), *gguf);
}

void expect_refused(const GgufBuilder& file, ErrorCode code, const std::string& words) {
  try {
    config_of(file);
    ADD_FAILURE() << "not refused; expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what() << "\nexpected: " << words;
  }
}

constexpr AttentionKind kKda = AttentionKind::Kda, kMla = AttentionKind::Mla;
const std::string kPrefix = "kimi-linear.";
const std::string kHeadCountKv = kPrefix + "attention.head_count_kv";

TEST(GgufConfig, SaysWhatTheKeysSay) {
  const ModelConfig c = config_of(mini_gguf());
  EXPECT_EQ(c.vocab_size, 260u);
  EXPECT_EQ(c.hidden_size, 4u);
  EXPECT_EQ(c.num_hidden_layers, 2u);
  EXPECT_EQ(c.intermediate_size, 8u);
  EXPECT_EQ(static_cast<float>(c.rms_norm_eps), 1e-5f);
  EXPECT_FALSE(c.tie_word_embeddings);
  EXPECT_EQ(c.model_max_length, 1000u);
  EXPECT_EQ(c.num_attention_heads, 2u);
  EXPECT_EQ(c.kv_lora_rank, 5u);
  EXPECT_EQ(c.qk_nope_head_dim, 3u);
  EXPECT_EQ(c.qk_rope_head_dim, 2u);
  EXPECT_EQ(c.v_head_dim, 2u);
  EXPECT_EQ(c.kda_num_heads, 2u);
  EXPECT_EQ(c.kda_head_dim, 3u);
  EXPECT_EQ(c.short_conv_kernel_size, 4u);
  EXPECT_EQ(c.num_experts, 3u);
  EXPECT_EQ(c.num_experts_per_token, 2u);
  EXPECT_EQ(c.num_shared_experts, 1u);
  EXPECT_EQ(c.moe_intermediate_size, 6u);
  EXPECT_TRUE(c.moe_renormalize);
  EXPECT_EQ(c.routed_scaling_factor, 2.5);
  EXPECT_EQ(c.num_expert_group, 1u);
  EXPECT_EQ(c.topk_group, 1u);
  EXPECT_EQ(c.attention_kinds, (std::vector{kKda, kMla}));
  EXPECT_EQ(c.feed_forward_kinds, (std::vector{FeedForwardKind::Dense, FeedForwardKind::Moe}));
  EXPECT_TRUE(c.eos_token_ids.empty());
}

TEST(GgufConfig, MissingExpertWeightsNormMeansRenormalise) {
  EXPECT_TRUE(config_of(mini_gguf().without_key(kPrefix + "expert_weights_norm")).moe_renormalize);
  EXPECT_FALSE(config_of(mini_gguf().key(kPrefix + "expert_weights_norm", false)).moe_renormalize);
}

TEST(GgufConfig, TakesLayerKindsFromTensorsWhereOlderFilesDoNotTell) {
  const std::vector kinds{kKda, kMla};
  EXPECT_EQ(config_of(mini_gguf().key(kHeadCountKv, std::vector<int32_t>{2, 2})).attention_kinds, kinds);
  EXPECT_EQ(config_of(mini_gguf().key(kHeadCountKv, 2u)).attention_kinds, kinds);
  EXPECT_EQ(config_of(mini_gguf().without_key(kHeadCountKv)).attention_kinds, kinds);
  expect_refused(mini_gguf().without_key(kHeadCountKv).without_tensor("blk.0.ssm_a"), ErrorCode::Corrupt,
                 "no tensors 'blk.0.ssm_a' and 'blk.0.attn_kv_a_mqa.weight'");
  expect_refused(mini_gguf().key(kHeadCountKv, std::vector<int32_t>{0, 1, 0}), ErrorCode::Corrupt,
                 "holds 3 values; expected 2");
  expect_refused(mini_gguf().key(kHeadCountKv, std::vector<int32_t>{0, -1}), ErrorCode::Corrupt, "holds -1");
  const ModelConfig dense_by_tensors = config_of(mini_gguf().without_key(kPrefix + "leading_dense_block_count"));
  EXPECT_EQ(dense_by_tensors.feed_forward_kinds, (std::vector{FeedForwardKind::Dense, FeedForwardKind::Moe}));
}

TEST(GgufConfig, TakesPlainLengthsOfAHeadWhereTheMlaOnesAreMissing) {
  const ModelConfig c = config_of(mini_gguf()
                                      .without_key(kPrefix + "attention.key_length_mla")
                                      .without_key(kPrefix + "attention.value_length_mla")
                                      .key(kPrefix + "attention.key_length", 5u)
                                      .key(kPrefix + "attention.value_length", 2u));
  EXPECT_EQ(c.qk_nope_head_dim, 3u);
  EXPECT_EQ(c.v_head_dim, 2u);
}

TEST(GgufConfig, TakesTheVocabularyFromTheEmbeddingAndTiesItWithoutAnOutput) {
  EXPECT_EQ(config_of(mini_gguf().without_key(kPrefix + "vocab_size")).vocab_size, 260u);
  expect_refused(mini_gguf().without_key(kPrefix + "vocab_size").without_tensor("token_embd.weight"), ErrorCode::Corrupt,
                 "'kimi-linear.vocab_size' is missing");
  EXPECT_TRUE(config_of(mini_gguf().without_tensor("output.weight")).tie_word_embeddings);
}

TEST(GgufConfig, TakesTheIdsOfTheTokenizersKeys) {
  GgufBuilder file = mini_gguf();
  file.key("tokenizer.ggml.eos_token_id", 257u).key("tokenizer.ggml.eot_token_id", 258u);
  file.key("tokenizer.ggml.bos_token_id", 1u).key("tokenizer.ggml.padding_token_id", 2u);
  const ModelConfig c = config_of(file);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{257, 258}));
  EXPECT_EQ(c.bos_token_id, 1);
  EXPECT_EQ(c.pad_token_id, 2);
  expect_refused(file.key("tokenizer.ggml.eos_token_id", 260u), ErrorCode::Corrupt, "a whole number in 0..259");
}

TEST(GgufConfig, AnotherArchitectureIsRefusedByName) {
  expect_refused(mini_gguf().key("general.architecture", "llama"), ErrorCode::Unsupported,
                 "key 'general.architecture' is 'llama'; expected 'kimi-linear'");
  expect_refused(mini_gguf().key("general.architecture", "\xff\x80"), ErrorCode::Unsupported,
                 "is '?"
                 "?'");
  expect_refused(GgufBuilder(), ErrorCode::Corrupt, "'general.architecture' is missing");
}

TEST(GgufConfig, OtherModelsOfTheArchitectureAreRefusedByTheirKey) {
  const auto with = [](const std::string& key, uint32_t value) { return mini_gguf().key(kPrefix + key, value); };
  expect_refused(with("expert_gating_func", 1), ErrorCode::Unsupported, "'kimi-linear.expert_gating_func' is 1; expected 2");
  expect_refused(with("attention.q_lora_rank", 8), ErrorCode::Unsupported, "q_lora_rank");
  expect_refused(with("nextn_predict_layers", 1), ErrorCode::Unsupported, "nextn_predict_layers");
  expect_refused(with("kda.gate_lower_bound", 1), ErrorCode::Unsupported, "'kimi-linear.kda.gate_lower_bound'");
  expect_refused(mini_gguf().key(kPrefix + "rope.scaling.type", "yarn"), ErrorCode::Unsupported, "'yarn'");
}

TEST(GgufConfig, EveryKeyThatMattersMustBeThereAndOfItsTypeAndRange) {
  for (const char* key :
       {"context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count",
        "attention.layer_norm_rms_epsilon", "attention.kv_lora_rank", "rope.dimension_count", "ssm.conv_kernel", "kda.head_dim",
        "expert_count", "expert_used_count", "expert_shared_count", "expert_feed_forward_length", "expert_weights_scale"}) {
    const std::string shown = "key 'kimi-linear." + std::string(key) + "' is";
    expect_refused(mini_gguf().without_key(kPrefix + key), ErrorCode::Corrupt, shown + " missing");
    expect_refused(mini_gguf().key(kPrefix + key, "word"), ErrorCode::Corrupt, shown + " \"word\"");
    expect_refused(mini_gguf().key(kPrefix + key, -1), ErrorCode::Corrupt, shown + " -1");
    expect_refused(mini_gguf().key(kPrefix + key, std::vector<std::string>{"a"}), ErrorCode::Corrupt, "an array of 1 values");
  }
  expect_refused(mini_gguf().key(kPrefix + "expert_used_count", 4u), ErrorCode::Corrupt, "expert_used_count' is 4");
  expect_refused(mini_gguf().key(kPrefix + "attention.key_length_mla", 2u), ErrorCode::Corrupt, "more than");
  expect_refused(mini_gguf().key(kPrefix + "attention.head_count", 1u << 20), ErrorCode::Corrupt, "expected at most");
  expect_refused(mini_gguf().key(kPrefix + "expert_group_count", 2u), ErrorCode::Corrupt, "does not divide");
}

TEST(GgufConfig, OfAGoldenFileIsTheModelsOwn) {
  GOLDEN_OR_SKIP(file, "gguf/mini-q2_k.gguf");
  const auto gguf = GgufFile::open(file);
  const ModelConfig c = read_gguf_config(gguf->metadata(), *gguf);
  EXPECT_EQ(c.attention_kinds, (std::vector{kKda, kKda, kMla, kKda}));
  EXPECT_EQ(c.qk_nope_head_dim, 64u);
  EXPECT_EQ(c.v_head_dim, 64u);
  EXPECT_EQ(static_cast<float>(c.routed_scaling_factor), 2.446f);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{770}));
}

}  // namespace
}  // namespace kilin

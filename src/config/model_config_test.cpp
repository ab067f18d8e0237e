#include "config/model_config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "support/configs.h"
#include "support/golden.h"

namespace kilin {
namespace {

using testing::expect_refused;
using testing::in_repository;
using testing::in_transformers_form;
using testing::published_config;
using testing::refusal;

void parse_text(const std::string& text) { ModelConfig::parse(text, "config.json"); }

ModelConfig parse(const Json& json) { return ModelConfig::parse(json.dump(), "config.json"); }

TEST(ModelConfig, ReadsThePublishedConfiguration) {
  const ModelConfig c = parse(published_config());
  EXPECT_EQ(c.vocab_size, 163840u);
  EXPECT_EQ(c.hidden_size, 2304u);
  EXPECT_EQ(c.intermediate_size, 9216u);
  EXPECT_EQ(c.rms_norm_eps, 1e-5);
  EXPECT_FALSE(c.tie_word_embeddings);
  EXPECT_EQ(c.model_max_length, 1048576u);
  EXPECT_EQ(c.qk_head_dim(), 192u);
  EXPECT_EQ(c.mla_query_width(), 6144u);
  EXPECT_EQ(c.mla_kv_width(), 8192u);
  EXPECT_EQ(c.mla_latent_width(), 576u);
  EXPECT_EQ(c.kda_width(), 4096u);
  EXPECT_EQ(c.short_conv_kernel_size, 4u);
  EXPECT_EQ(c.num_experts, 256u);
  EXPECT_EQ(c.num_experts_per_token, 8u);
  EXPECT_EQ(c.shared_expert_width(), 1024u);
  EXPECT_TRUE(c.moe_renormalize);
  EXPECT_EQ(c.routed_scaling_factor, 2.446);
  EXPECT_EQ(c.num_expert_group, 1u);
  EXPECT_EQ(c.topk_group, 1u);
  EXPECT_EQ(c.eos_token_ids, std::vector<int32_t>{163586});
  EXPECT_EQ(c.bos_token_id, 163584);
  EXPECT_EQ(c.pad_token_id, 163839);
  EXPECT_EQ(c.dtype, "bfloat16");
}

TEST(ModelConfig, ReadsTheEmbeddedAndTheGoldenModel) {
  const ModelConfig tiny = ModelConfig::read(in_repository("models/tiny"));
  EXPECT_EQ(tiny.num_hidden_layers, 6u);
  EXPECT_EQ(tiny.mla_layers(), 2u);
  EXPECT_TRUE(tiny.is_mla(3) && tiny.is_mla(5));
  GOLDEN_OR_SKIP(folder, "tiny-kimi-linear");
  const ModelConfig golden = ModelConfig::read(folder);
  EXPECT_EQ(golden.hidden_size, 128u);
  EXPECT_EQ(golden.kda_layers(), 6u);
  EXPECT_EQ(golden.num_experts_per_token, 4u);
}

TEST(ModelConfig, TransformersOwnFormGivesAnEqualConfiguration) {
  const ModelConfig expected = parse(published_config());
  Json native = in_transformers_form(published_config());
  EXPECT_EQ(parse(native), expected);

  native["num_local_experts"] = native["n_routed_experts"];  // other spellings of other versions
  native.erase("n_routed_experts");
  native["linear_key_head_dim"] = native["linear_value_head_dim"] = native["linear_head_dim"];
  native["linear_num_key_heads"] = native["linear_num_value_heads"] = native["linear_num_heads"];
  native.erase("linear_head_dim");
  native.erase("linear_num_heads");
  native["torch_dtype"] = native["dtype"];
  native.erase("dtype");
  for (auto& type : native["layer_types"])
    if (type == "linear_attention") type = "kda_attention";
  native["num_key_value_heads"] = nullptr;
  native["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
  native["mla_use_output_gate"] = false;
  native["attn_res_block_size"] = 0;
  native["dense_ffn_hidden"] = native["intermediate_size"];
  native["attention_bias"] = false;
  EXPECT_EQ(parse(native), expected);
}

TEST(ModelConfig, BothFormsAtOnceAreFineWhileTheyAgree) {
  Json both = published_config();
  both.update(in_transformers_form(published_config()));
  EXPECT_EQ(parse(both), parse(published_config()));
}

TEST(ModelConfig, ADepthOfOneKindAloneAndSeveralEndTokensAreFine) {
  Json json = published_config();
  json["num_hidden_layers"] = 2;
  json["linear_attn_config"]["kda_layers"] = {2, 1};
  json["linear_attn_config"]["full_attn_layers"] = Json::array();
  json["eos_token_id"] = {163586, 163585};
  json["bos_token_id"] = nullptr;
  json.erase("pad_token_id");
  json.erase("dtype");
  const ModelConfig c = parse(json);
  EXPECT_EQ(c.kda_layers(), 2u);
  EXPECT_EQ(c.mla_layers(), 0u);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{163586, 163585}));
  EXPECT_FALSE(c.bos_token_id || c.pad_token_id);
  EXPECT_EQ(c.dtype, "");
}

TEST(ModelConfig, EveryKeyThatMattersIsMissedByName) {
  for (const char* key : {"architectures",
                          "model_type",
                          "vocab_size",
                          "hidden_size",
                          "num_hidden_layers",
                          "intermediate_size",
                          "rms_norm_eps",
                          "tie_word_embeddings",
                          "model_max_length",
                          "num_attention_heads",
                          "kv_lora_rank",
                          "qk_nope_head_dim",
                          "qk_rope_head_dim",
                          "v_head_dim",
                          "mla_use_nope",
                          "num_experts",
                          "num_experts_per_token",
                          "num_shared_experts",
                          "moe_intermediate_size",
                          "moe_renormalize",
                          "moe_router_activation_func",
                          "routed_scaling_factor",
                          "num_expert_group",
                          "topk_group",
                          "first_k_dense_replace",
                          "moe_layer_freq",
                          "hidden_act",
                          "eos_token_id",
                          "linear_attn_config"}) {
    Json json = published_config();
    ASSERT_EQ(json.erase(key), 1u) << key;
    const std::string message = refusal(parse_text, json.dump());
    EXPECT_NE(message.find(key), std::string::npos) << key << ": " << message;
    EXPECT_NE(message.find("missing; expected"), std::string::npos) << key << ": " << message;
  }
  for (const char* key : {"full_attn_layers", "head_dim", "kda_layers", "num_heads", "short_conv_kernel_size"}) {
    Json json = published_config();
    ASSERT_EQ(json["linear_attn_config"].erase(key), 1u);
    const std::string message = refusal(parse_text, json.dump());
    EXPECT_NE(message.find("linear_attn_config." + std::string(key)), std::string::npos) << message;
    EXPECT_NE(message.find("missing"), std::string::npos) << message;
  }
}

// Keys of config.json that do not change the model may be missing.
TEST(ModelConfig, KeysWithoutBearingMayBeAbsent) {
  for (const char* key :
       {"auto_map", "head_dim", "initializer_range", "num_key_value_heads", "num_nextn_predict_layers", "q_lora_rank",
        "rope_scaling", "rope_theta", "transformers_version", "use_cache", "use_grouped_topk"}) {
    Json json = published_config();
    ASSERT_EQ(json.erase(key), 1u) << key;
    EXPECT_EQ(refusal(parse_text, json.dump()), "") << key;
  }
}

TEST(ModelConfig, NoSizeTakesAHostileValue) {
  const Json hostile[] = {-1,
                          0,
                          1.5,
                          4.0,
                          "4",
                          true,
                          nullptr,
                          {4},
                          Json::object(),
                          -9007199254740993,
                          1e300,
                          9223372036854775807,
                          18446744073709551615u,
                          4294967296};
  for (const char* key :
       {"vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads", "kv_lora_rank",
        "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "num_experts", "num_experts_per_token", "num_shared_experts",
        "moe_intermediate_size", "num_expert_group", "topk_group", "model_max_length", "linear_attn_config.num_heads",
        "linear_attn_config.head_dim", "linear_attn_config.short_conv_kernel_size"})
    for (const Json& value : hostile) {
      Json json = published_config();
      const std::string name = key;
      const size_t dot = name.find('.');
      (dot == std::string::npos ? json[name] : json[name.substr(0, dot)][name.substr(dot + 1)]) = value;
      ErrorCode code{};
      const std::string message = refusal(parse_text, json.dump(), &code);
      EXPECT_NE(message.find("'" + name + "'"), std::string::npos) << name << " = " << value << ": " << message;
      EXPECT_NE(message.find("expected"), std::string::npos) << message;
      EXPECT_EQ(code, ErrorCode::Corrupt) << message;
    }
}

TEST(ModelConfig, NoBooleanOrRealTakesAHostileValue) {
  for (const char* key : {"tie_word_embeddings", "moe_renormalize", "mla_use_nope"})
    for (const Json& value : {Json("true"), Json(1), Json(nullptr), Json::array({true})}) {
      Json json = published_config();
      json[key] = value;
      EXPECT_NE(refusal(parse_text, json.dump()).find("true or false"), std::string::npos) << key << " = " << value;
    }
  for (const char* key : {"rms_norm_eps", "routed_scaling_factor"})
    for (const Json& value : {Json("1"), Json(0), Json(-1e-5), Json(1e300), Json(1e-300), Json(nullptr), Json(true)}) {
      Json json = published_config();
      json[key] = value;
      EXPECT_NE(refusal(parse_text, json.dump()).find(key), std::string::npos) << key << " = " << value;
    }
}

TEST(ModelConfig, TwoSpellingsMayNotContradict) {
  const auto c = ErrorCode::Corrupt;
  expect_refused(
      parse_text, published_config(),
      {{[](Json& j) { j["norm_topk_prob"] = false; }, c, {"norm_topk_prob", "false", "moe_renormalize", "true"}},
       {[](Json& j) { j["n_group"] = 8; }, c, {"'n_group' (8)", "'num_expert_group' (1)"}},
       {[](Json& j) { j["num_experts_per_tok"] = 6; }, c, {"'num_experts_per_tok' (6)", "'num_experts_per_token' (8)"}},
       {[](Json& j) { j["n_shared_experts"] = 2; }, c, {"n_shared_experts", "num_shared_experts"}},
       {[](Json& j) { j["num_local_experts"] = 64; }, c, {"num_local_experts", "num_experts"}},
       {[](Json& j) { j["n_routed_experts"] = 64; }, c, {"n_routed_experts", "num_experts"}},
       {[](Json& j) { j["max_position_embeddings"] = 4096; },
        c,
        {"max_position_embeddings", "4096", "model_max_length", "1048576"}},
       {[](Json& j) { j["linear_head_dim"] = 64; }, c, {"linear_head_dim", "linear_attn_config.head_dim"}},
       {[](Json& j) { j["linear_key_head_dim"] = 64; }, c, {"linear_key_head_dim", "linear_attn_config.head_dim"}},
       {[](Json& j) { j["linear_num_heads"] = 16; }, c, {"linear_num_heads", "linear_attn_config.num_heads"}},
       {[](Json& j) { j["linear_conv_kernel_dim"] = 3; }, c, {"linear_conv_kernel_dim", "short_conv_kernel_size"}},
       {[](Json& j) { j["torch_dtype"] = "float32"; }, c, {"torch_dtype", "float32", "dtype", "bfloat16"}},
       {[](Json& j) { j["scoring_func"] = "softmax"; }, c, {"scoring_func", "softmax", "moe_router_activation_func"}}});
}

TEST(ModelConfig, ExpertsGroupsAndTopKMustFitTogether) {
  const auto c = ErrorCode::Corrupt;
  expect_refused(parse_text, published_config(),
                 {{[](Json& j) { j["num_experts_per_token"] = 257; }, c, {"num_experts_per_token", "257", "1..256"}},
                  {[](Json& j) { j["num_expert_group"] = 3; }, c, {"num_expert_group (3)", "256"}},
                  {[](Json& j) { j["num_expert_group"] = 4, j["topk_group"] = 5; }, c, {"topk_group", "5", "1..4"}},
                  {[](Json& j) { j["num_expert_group"] = 64; }, c, {"num_experts_per_token", "8", "at most 4", "topk_group"}},
                  {[](Json& j) { j["num_expert_group"] = j["topk_group"] = 256; }, c, {"num_expert_group", "at least 2"}},
                  {[](Json& j) { j["num_expert_group"] = 4, j["use_grouped_topk"] = false; }, c, {"use_grouped_topk"}},
                  {[](Json& j) { j["first_k_dense_replace"] = 28; }, c, {"first_k_dense_replace", "28", "0..27"}},
                  {[](Json& j) { j["moe_layer_freq"] = 0; }, c, {"moe_layer_freq", "0"}},
                  {[](Json& j) {
                     j["moe_layer_freq"] = {1, 1};
                   },
                   c,
                   {"moe_layer_freq", "[1,1]"}},
                  {[](Json& j) { j["num_experts"] = 4097; }, c, {"num_experts", "4097", "1..4096"}},
                  {[](Json& j) {
                     j["num_experts"] = 4096;
                     j["num_hidden_layers"] = 100;
                     for (int layer = 28; layer <= 100; ++layer) j["linear_attn_config"]["kda_layers"].push_back(layer);
                   },
                   c,
                   {"num_experts (4096)", "num_hidden_layers (100)"}}});
}

TEST(ModelConfig, ProductsOfAcceptedSizesAreBounded) {
  const auto c = ErrorCode::Corrupt;
  expect_refused(
      parse_text, published_config(),
      {{[](Json& j) { j["num_attention_heads"] = j["num_key_value_heads"] = 1048576; }, c, {"num_attention_heads x"}},
       {[](Json& j) { j["v_head_dim"] = 1048576; }, c, {"v_head_dim"}},
       {[](Json& j) { j["kv_lora_rank"] = 1048576; }, c, {"kv_lora_rank + qk_rope_head_dim"}},
       {[](Json& j) { j["linear_attn_config"]["num_heads"] = 1048576; }, c, {"linear_attn_config.num_heads x head_dim"}},
       {[](Json& j) { j["num_shared_experts"] = 1048576; }, c, {"num_shared_experts x moe_intermediate_size"}}});
}

TEST(ModelConfig, TokenIdsMustStandInTheVocabulary) {
  const auto c = ErrorCode::Corrupt;
  expect_refused(parse_text, published_config(),
                 {{[](Json& j) { j["eos_token_id"] = 163840; }, c, {"eos_token_id", "163840", "0..163839"}},
                  {[](Json& j) {
                     j["eos_token_id"] = {1, -1};
                   },
                   c,
                   {"eos_token_id", "-1"}},
                  {[](Json& j) { j["eos_token_id"] = Json::array(); }, c, {"eos_token_id", "[]"}},
                  {[](Json& j) { j["eos_token_id"] = nullptr; }, c, {"eos_token_id", "null"}},
                  {[](Json& j) { j["eos_token_id"] = "x"; }, c, {"eos_token_id", "\"x\""}},
                  {[](Json& j) { j["bos_token_id"] = 163840; }, c, {"bos_token_id", "163840"}},
                  {[](Json& j) { j["pad_token_id"] = 1.5; }, c, {"pad_token_id", "1.5"}}});
}

TEST(ModelConfig, TextThatIsNoConfigurationIsRefused) {
  for (const char* text : {"", "{", "[]", "5", "null", "{\"hidden_size\": NaN}", "{\"rms_norm_eps\": 1e999}", "{}x"})
    EXPECT_TRUE(refusal(parse_text, text).starts_with("config.json: ")) << text;
  EXPECT_NE(refusal(parse_text, R"({"hidden_size": 1, "hidden_size": 2})").find("hidden_size"), std::string::npos);
  const std::string whole = published_config().dump();
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(parse_text, whole.substr(0, n)), "") << n;
  testing::TemporaryFolder folder;
  EXPECT_THROW(ModelConfig::read(folder.path()), Error);
}

}  // namespace
}  // namespace kilin

#include "model/model_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "support/golden.h"

namespace kilin {
namespace {

using testing::in_repository;

// The published config.json; a part of the repository, so that no test is skipped.
Json published() { return read_json(in_repository("tests/golden/real/config.json")); }

ModelConfig parse(const Json& json) { return ModelConfig::parse(json.dump(), "config.json"); }

// The same model as transformers' own class saves it: other spellings, no linear_attn_config, words for the layers.
Json in_transformers_form(const Json& json) {
  Json other = json;
  const auto rename = [&](const char* from, const char* to) {
    other[to] = other.at(from);
    other.erase(from);
  };
  rename("moe_renormalize", "norm_topk_prob");
  rename("num_expert_group", "n_group");
  rename("num_experts_per_token", "num_experts_per_tok");
  rename("num_shared_experts", "n_shared_experts");
  rename("num_experts", "n_routed_experts");
  rename("model_max_length", "max_position_embeddings");
  const Json linear = other.at("linear_attn_config");
  other.erase("linear_attn_config");
  other["linear_head_dim"] = linear.at("head_dim");
  other["linear_num_heads"] = linear.at("num_heads");
  other["linear_conv_kernel_dim"] = linear.at("short_conv_kernel_size");
  const size_t layers = other.at("num_hidden_layers");
  other["layer_types"] = std::vector<std::string>(layers, "full_attention");
  for (const size_t layer : linear.at("kda_layers")) other["layer_types"][layer - 1] = "linear_attention";
  other["mlp_layer_types"] = std::vector<std::string>(layers, "sparse");
  for (size_t layer = 0; layer < other.at("first_k_dense_replace"); ++layer) other["mlp_layer_types"][layer] = "dense";
  for (const char* key : {"first_k_dense_replace", "moe_layer_freq", "mla_use_nope", "moe_router_activation_func",
                          "use_grouped_topk", "num_nextn_predict_layers", "rope_theta", "rope_scaling"})
    other.erase(key);
  return other;
}

TEST(ModelConfig, ReadsThePublishedConfiguration) {
  const ModelConfig c = parse(published());
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

TEST(ModelConfig, The27PublishedLayersHaveTheRightKinds) {
  const ModelConfig c = parse(published());
  ASSERT_EQ(c.num_hidden_layers, 27u);
  for (size_t layer = 0; layer < 27; ++layer) {
    const bool mla = (layer + 1) % 4 == 0 || layer == 26;  // 1-based 4, 8, 12, 16, 20, 24 and 27
    EXPECT_EQ(c.is_mla(layer), mla) << layer;
    EXPECT_EQ(c.is_kda(layer), !mla) << layer;
    EXPECT_EQ(c.is_moe(layer), layer != 0) << layer;
  }
  EXPECT_EQ(c.kda_layers(), 20u);
  EXPECT_EQ(c.mla_layers(), 7u);
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
  const ModelConfig expected = parse(published());
  Json native = in_transformers_form(published());
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
  Json both = published();
  both.update(in_transformers_form(published()));
  EXPECT_EQ(parse(both), parse(published()));
}

TEST(ModelConfig, ExpertsMayStandInEveryNthLayer) {
  Json json = published();
  json["first_k_dense_replace"] = 2;
  json["moe_layer_freq"] = 3;
  const ModelConfig c = parse(json);
  for (size_t layer = 0; layer < 27; ++layer) EXPECT_EQ(c.is_moe(layer), layer >= 2 && layer % 3 == 0) << layer;
}

TEST(ModelConfig, ADepthOfOneKindAloneAndSeveralEndTokensAreFine) {
  Json json = published();
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

// Parses and gives the message; empty if it was accepted.
std::string message_of(const std::string& text, ErrorCode* code = nullptr) {
  try {
    ModelConfig::parse(text, "config.json");
    return "";
  } catch (const Error& error) {
    if (code != nullptr) *code = error.code();
    return error.what();
  }
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
    Json json = published();
    ASSERT_EQ(json.erase(key), 1u) << key;
    const std::string message = message_of(json.dump());
    EXPECT_NE(message.find(key), std::string::npos) << key << ": " << message;
    EXPECT_NE(message.find("missing; expected"), std::string::npos) << key << ": " << message;
  }
  for (const char* key : {"full_attn_layers", "head_dim", "kda_layers", "num_heads", "short_conv_kernel_size"}) {
    Json json = published();
    ASSERT_EQ(json["linear_attn_config"].erase(key), 1u);
    const std::string message = message_of(json.dump());
    EXPECT_NE(message.find("linear_attn_config." + std::string(key)), std::string::npos) << message;
    EXPECT_NE(message.find("missing"), std::string::npos) << message;
  }
}

// What config.json says that has no bearing may go.
TEST(ModelConfig, KeysWithoutBearingMayBeAbsent) {
  for (const char* key :
       {"auto_map", "head_dim", "initializer_range", "num_key_value_heads", "num_nextn_predict_layers", "q_lora_rank",
        "rope_scaling", "rope_theta", "transformers_version", "use_cache", "use_grouped_topk"}) {
    Json json = published();
    ASSERT_EQ(json.erase(key), 1u) << key;
    EXPECT_EQ(message_of(json.dump()), "") << key;
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
      Json json = published();
      const std::string name = key;
      const size_t dot = name.find('.');
      (dot == std::string::npos ? json[name] : json[name.substr(0, dot)][name.substr(dot + 1)]) = value;
      ErrorCode code{};
      const std::string message = message_of(json.dump(), &code);
      EXPECT_NE(message.find("'" + name + "'"), std::string::npos) << name << " = " << value << ": " << message;
      EXPECT_NE(message.find("expected"), std::string::npos) << message;
      EXPECT_EQ(code, ErrorCode::Corrupt) << message;
    }
}

TEST(ModelConfig, NoBooleanOrRealTakesAHostileValue) {
  for (const char* key : {"tie_word_embeddings", "moe_renormalize", "mla_use_nope"})
    for (const Json& value : {Json("true"), Json(1), Json(nullptr), Json::array({true})}) {
      Json json = published();
      json[key] = value;
      EXPECT_NE(message_of(json.dump()).find("true or false"), std::string::npos) << key << " = " << value;
    }
  for (const char* key : {"rms_norm_eps", "routed_scaling_factor"})
    for (const Json& value : {Json("1"), Json(0), Json(-1e-5), Json(1e300), Json(1e-300), Json(nullptr), Json(true)}) {
      Json json = published();
      json[key] = value;
      EXPECT_NE(message_of(json.dump()).find(key), std::string::npos) << key << " = " << value;
    }
}

struct BadConfig {
  const char* why;
  std::function<void(Json&)> edit;
  ErrorCode code;
  std::vector<const char*> words;
};

void expect_refused(const std::vector<BadConfig>& cases, const Json& base) {
  for (const BadConfig& bad : cases) {
    Json json = base;
    bad.edit(json);
    ErrorCode code{};
    const std::string message = message_of(json.dump(), &code);
    EXPECT_EQ(code, bad.code) << bad.why << ": " << message;
    EXPECT_TRUE(message.starts_with("config.json: ")) << bad.why << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const char* word : bad.words)
      EXPECT_NE(message.find(word), std::string::npos) << bad.why << ": no \"" << word << "\" in: " << message;
  }
}

TEST(ModelConfig, LayerListsMustPartitionTheLayers) {
  const auto c = ErrorCode::Corrupt;
  const auto linear = [](Json& j) -> Json& { return j["linear_attn_config"]; };
  expect_refused(
      {{"both",
        [&](Json& j) { linear(j)["kda_layers"].push_back(4); },
        c,
        {"kda_layers", "full_attn_layers", "layer 4", "1..27"}},
       {"neither", [&](Json& j) { linear(j)["kda_layers"].erase(0); }, c, {"no layer 1", "1..27"}},
       {"twice", [&](Json& j) { linear(j)["kda_layers"].push_back(26); }, c, {"kda_layers", "26 twice"}},
       {"from 0", [&](Json& j) { linear(j)["kda_layers"][0] = 0; }, c, {"kda_layers", "holds 0", "1..27"}},
       {"beyond", [&](Json& j) { linear(j)["full_attn_layers"].push_back(28); }, c, {"full_attn_layers", "holds 28", "1..27"}},
       {"negative", [&](Json& j) { linear(j)["full_attn_layers"][0] = -4; }, c, {"full_attn_layers", "-4"}},
       {"float", [&](Json& j) { linear(j)["kda_layers"][0] = 1.0; }, c, {"kda_layers", "1.0"}},
       {"string", [&](Json& j) { linear(j)["kda_layers"] = "1,2,3"; }, c, {"kda_layers", "\"1,2,3\"", "list"}},
       {"depth", [&](Json& j) { j["num_hidden_layers"] = 28; }, c, {"layer 28"}},
       {"shallow", [&](Json& j) { j["num_hidden_layers"] = 26; }, c, {"27", "1..26"}},
       {"no object", [&](Json& j) { j["linear_attn_config"] = Json::array(); }, c, {"linear_attn_config", "object"}},
       {"null", [&](Json& j) { j["linear_attn_config"] = nullptr; }, c, {"linear_attn_config", "missing"}},
       {"words",
        [&](Json& j) { j["layer_types"] = std::vector<std::string>(27, "linear_attention"); },
        c,
        {"layer_types", "linear_attn_config", "layer 3", "contradict"}}},
      published());
  expect_refused({{"number", [](Json& j) { j["layer_types"].erase(0); }, c, {"layer_types", "26", "expected 27"}},
                  {"word",
                   [](Json& j) { j["layer_types"][5] = "sliding_attention"; },
                   ErrorCode::Unsupported,
                   {"layer_types", "sliding_attention", "layer 5", "full_attention"}},
                  {"type", [](Json& j) { j["layer_types"][5] = 1; }, c, {"layer_types", "holds 1"}},
                  {"mlp word",
                   [](Json& j) { j["mlp_layer_types"][1] = "moe"; },
                   ErrorCode::Unsupported,
                   {"mlp_layer_types", "'moe'", "dense or sparse"}},
                  {"mlp against number",
                   [](Json& j) { j["first_k_dense_replace"] = 2; },
                   c,
                   {"first_k_dense_replace", "mlp_layer_types", "layer 1", "contradict"}},
                  {"none", [](Json& j) { j.erase("layer_types"); }, c, {"mla_use_nope"}}},
                 in_transformers_form(published()));
}

TEST(ModelConfig, TwoSpellingsMayNotContradict) {
  const auto c = ErrorCode::Corrupt;
  expect_refused(
      {{"", [](Json& j) { j["norm_topk_prob"] = false; }, c, {"norm_topk_prob", "false", "moe_renormalize", "true"}},
       {"", [](Json& j) { j["n_group"] = 8; }, c, {"'n_group' (8)", "'num_expert_group' (1)"}},
       {"", [](Json& j) { j["num_experts_per_tok"] = 6; }, c, {"'num_experts_per_tok' (6)", "'num_experts_per_token' (8)"}},
       {"", [](Json& j) { j["n_shared_experts"] = 2; }, c, {"n_shared_experts", "num_shared_experts"}},
       {"", [](Json& j) { j["num_local_experts"] = 64; }, c, {"num_local_experts", "num_experts"}},
       {"", [](Json& j) { j["n_routed_experts"] = 64; }, c, {"n_routed_experts", "num_experts"}},
       {"",
        [](Json& j) { j["max_position_embeddings"] = 4096; },
        c,
        {"max_position_embeddings", "4096", "model_max_length", "1048576"}},
       {"", [](Json& j) { j["linear_head_dim"] = 64; }, c, {"linear_head_dim", "linear_attn_config.head_dim"}},
       {"", [](Json& j) { j["linear_key_head_dim"] = 64; }, c, {"linear_key_head_dim", "linear_attn_config.head_dim"}},
       {"", [](Json& j) { j["linear_num_heads"] = 16; }, c, {"linear_num_heads", "linear_attn_config.num_heads"}},
       {"", [](Json& j) { j["linear_conv_kernel_dim"] = 3; }, c, {"linear_conv_kernel_dim", "short_conv_kernel_size"}},
       {"", [](Json& j) { j["torch_dtype"] = "float32"; }, c, {"torch_dtype", "float32", "dtype", "bfloat16"}},
       {"", [](Json& j) { j["scoring_func"] = "softmax"; }, c, {"scoring_func", "softmax", "moe_router_activation_func"}}},
      published());
}

TEST(ModelConfig, ExpertsGroupsAndTopKMustFitTogether) {
  const auto c = ErrorCode::Corrupt;
  expect_refused(
      {{"top-k", [](Json& j) { j["num_experts_per_token"] = 257; }, c, {"num_experts_per_token", "257", "1..256"}},
       {"divide", [](Json& j) { j["num_expert_group"] = 3; }, c, {"num_expert_group (3)", "256"}},
       {"more kept", [](Json& j) { j["num_expert_group"] = 4, j["topk_group"] = 5; }, c, {"topk_group", "5", "1..4"}},
       {"kept too few",
        [](Json& j) { j["num_expert_group"] = 64; },
        c,
        {"num_experts_per_token", "8", "at most 4", "topk_group"}},
       {"groups of one", [](Json& j) { j["num_expert_group"] = j["topk_group"] = 256; }, c, {"num_expert_group", "at least 2"}},
       {"not grouped", [](Json& j) { j["num_expert_group"] = 4, j["use_grouped_topk"] = false; }, c, {"use_grouped_topk"}},
       {"dense", [](Json& j) { j["first_k_dense_replace"] = 28; }, c, {"first_k_dense_replace", "28", "0..27"}},
       {"frequency", [](Json& j) { j["moe_layer_freq"] = 0; }, c, {"moe_layer_freq", "0"}},
       {"frequency list",
        [](Json& j) {
          j["moe_layer_freq"] = {1, 1};
        },
        c,
        {"moe_layer_freq", "[1,1]"}},
       {"too many", [](Json& j) { j["num_experts"] = 131072; }, c, {"num_experts (131072)", "num_hidden_layers (27)"}}},
      published());
}

TEST(ModelConfig, ProductsOfAcceptedSizesAreBounded) {
  const auto c = ErrorCode::Corrupt;
  expect_refused(
      {{"", [](Json& j) { j["num_attention_heads"] = j["num_key_value_heads"] = 1048576; }, c, {"num_attention_heads x"}},
       {"", [](Json& j) { j["v_head_dim"] = 1048576; }, c, {"v_head_dim"}},
       {"", [](Json& j) { j["kv_lora_rank"] = 1048576; }, c, {"kv_lora_rank + qk_rope_head_dim"}},
       {"", [](Json& j) { j["linear_attn_config"]["num_heads"] = 1048576; }, c, {"linear_attn_config.num_heads x head_dim"}},
       {"", [](Json& j) { j["num_shared_experts"] = 1048576; }, c, {"num_shared_experts x moe_intermediate_size"}}},
      published());
}

TEST(ModelConfig, OtherModelsAreRefusedByName) {
  const auto u = ErrorCode::Unsupported, c = ErrorCode::Corrupt;
  expect_refused({{"",
                   [](Json& j) { j["architectures"] = {"DeepseekV3ForCausalLM"}; },
                   u,
                   {"architectures", "DeepseekV3ForCausalLM", "KimiLinear"}},
                  {"", [](Json& j) { j["architectures"] = Json::array(); }, u, {"architectures", "[]"}},
                  {"", [](Json& j) { j["architectures"] = "KimiLinearForCausalLM"; }, c, {"architectures", "list"}},
                  {"", [](Json& j) { j["model_type"] = "kimi_k2"; }, u, {"model_type", "kimi_k2", "kimi_linear"}},
                  {"", [](Json& j) { j["model_type"] = 5; }, c, {"model_type", "5"}},
                  {"", [](Json& j) { j["gate_lower_bound"] = -5.0; }, u, {"gate_lower_bound", "-5.0", "K3"}},
                  {"",
                   [](Json& j) { j["linear_attn_config"]["gate_lower_bound"] = -5.0; },
                   u,
                   {"linear_attn_config.gate_lower_bound", "K3"}},
                  {"", [](Json& j) { j["use_full_rank_gate"] = true; }, u, {"use_full_rank_gate", "K3"}},
                  {"", [](Json& j) { j["mla_use_output_gate"] = true; }, u, {"mla_use_output_gate", "K3"}},
                  {"", [](Json& j) { j["attn_res_block_size"] = 12; }, u, {"attn_res_block_size", "12", "K3"}},
                  {"", [](Json& j) { j["routed_expert_hidden_size"] = 512; }, u, {"routed_expert_hidden_size", "512", "K3"}},
                  {"", [](Json& j) { j["dense_ffn_hidden"] = 512; }, u, {"dense_ffn_hidden", "512", "K3"}},
                  {"", [](Json& j) { j["linear_attn_config"]["expand_v"] = 2; }, u, {"linear_attn_config.expand_v", "2"}},
                  {"", [](Json& j) { j["hidden_act"] = "situ"; }, u, {"hidden_act", "situ", "silu"}},
                  {"",
                   [](Json& j) { j["moe_router_activation_func"] = "softmax"; },
                   u,
                   {"moe_router_activation_func", "softmax", "sigmoid"}},
                  {"", [](Json& j) { j["mla_use_nope"] = false; }, u, {"mla_use_nope", "false", "rotary"}},
                  {"", [](Json& j) { j["q_lora_rank"] = 1536; }, u, {"q_lora_rank", "1536", "null"}},
                  {"", [](Json& j) { j["num_nextn_predict_layers"] = 1; }, u, {"num_nextn_predict_layers", "1", "expected 0"}},
                  {"", [](Json& j) { j["num_nextn_predict_layers"] = -1; }, c, {"num_nextn_predict_layers", "-1"}},
                  {"", [](Json& j) { j["num_key_value_heads"] = 8; }, u, {"num_key_value_heads", "8", "32"}},
                  {"",
                   [](Json& j) {
                     j["rope_scaling"] = {{"type", "yarn"}, {"factor", 4}};
                   },
                   u,
                   {"rope_scaling", "yarn"}},
                  {"",
                   [](Json& j) {
                     j["rope_scaling"] = {{"factor", 4}};
                   },
                   u,
                   {"rope_scaling", "factor"}},
                  {"", [](Json& j) { j["rope_scaling"] = 2; }, c, {"rope_scaling", "2"}},
                  {"",
                   [](Json& j) {
                     j["rope_parameters"] = {{"rope_type", "llama3"}};
                   },
                   u,
                   {"rope_parameters", "llama3"}},
                  {"", [](Json& j) { j["attention_bias"] = true; }, u, {"attention_bias"}},
                  {"",
                   [](Json& j) { j["linear_key_head_dim"] = 128, j["linear_value_head_dim"] = 256; },
                   u,
                   {"linear_key_head_dim", "128", "linear_value_head_dim", "256"}},
                  {"", [](Json& j) { j["dtype"] = "float8_e4m3fn"; }, u, {"dtype", "float8_e4m3fn", "bfloat16"}},
                  {"",
                   [](Json& j) {
                     j["quantization_config"] = {{"bits", 4}};
                   },
                   u,
                   {"quantization_config", "quant_method"}},
                  {"", [](Json& j) { j["quantization_config"] = "fp8"; }, c, {"quantization_config", "object"}}},
                 published());
  for (const char* method : {"fp8", "awq", "gptq", "compressed-tensors", "bitsandbytes", "mxfp4"}) {
    Json json = published();
    json["quantization_config"] = {{"quant_method", method}};
    EXPECT_NE(message_of(json.dump()).find(method), std::string::npos) << method;
  }
}

TEST(ModelConfig, TokenIdsMustStandInTheVocabulary) {
  const auto c = ErrorCode::Corrupt;
  expect_refused({{"", [](Json& j) { j["eos_token_id"] = 163840; }, c, {"eos_token_id", "163840", "0..163839"}},
                  {"",
                   [](Json& j) {
                     j["eos_token_id"] = {1, -1};
                   },
                   c,
                   {"eos_token_id", "-1"}},
                  {"", [](Json& j) { j["eos_token_id"] = Json::array(); }, c, {"eos_token_id", "[]"}},
                  {"", [](Json& j) { j["eos_token_id"] = nullptr; }, c, {"eos_token_id", "null"}},
                  {"", [](Json& j) { j["eos_token_id"] = "x"; }, c, {"eos_token_id", "\"x\""}},
                  {"", [](Json& j) { j["bos_token_id"] = 163840; }, c, {"bos_token_id", "163840"}},
                  {"", [](Json& j) { j["pad_token_id"] = 1.5; }, c, {"pad_token_id", "1.5"}}},
                 published());
}

TEST(ModelConfig, TextThatIsNoConfigurationIsRefused) {
  for (const char* text : {"", "{", "[]", "5", "null", "{\"hidden_size\": NaN}", "{\"rms_norm_eps\": 1e999}", "{}x"})
    EXPECT_TRUE(message_of(text).starts_with("config.json: ")) << text;
  EXPECT_NE(message_of(R"({"hidden_size": 1, "hidden_size": 2})").find("hidden_size"), std::string::npos);
  const std::string whole = published().dump();
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(message_of(whole.substr(0, n)), "") << n;
  testing::TemporaryFolder folder;
  EXPECT_THROW(ModelConfig::read(folder.path()), Error);
}

}  // namespace
}  // namespace kilin

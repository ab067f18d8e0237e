#include "config/unsupported_models.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/model_config.h"
#include "support/configs.h"

namespace kilin {
namespace {

using testing::expect_refused;
using testing::published_config;
using testing::refusal;

void parse_text(const std::string& text) { ModelConfig::parse(text, "config.json"); }

TEST(UnsupportedModels, OtherModelsAreRefusedByName) {
  const auto u = ErrorCode::Unsupported, c = ErrorCode::Corrupt;
  expect_refused(
      parse_text, published_config(),
      {{[](Json& j) { j["architectures"] = {"DeepseekV3ForCausalLM"}; },
        u,
        {"architectures", "DeepseekV3ForCausalLM", "KimiLinear"}},
       {[](Json& j) { j["architectures"] = Json::array(); }, u, {"architectures", "[]"}},
       {[](Json& j) { j["architectures"] = "KimiLinearForCausalLM"; }, c, {"architectures", "list"}},
       {[](Json& j) { j["model_type"] = "kimi_k2"; }, u, {"model_type", "kimi_k2", "kimi_linear"}},
       {[](Json& j) { j["model_type"] = 5; }, c, {"model_type", "5"}},
       {[](Json& j) { j["gate_lower_bound"] = -5.0; }, u, {"gate_lower_bound", "-5.0", "K3"}},
       {[](Json& j) { j["linear_attn_config"]["gate_lower_bound"] = -5.0; }, u, {"linear_attn_config.gate_lower_bound", "K3"}},
       {[](Json& j) { j["use_full_rank_gate"] = true; }, u, {"use_full_rank_gate", "K3"}},
       {[](Json& j) { j["mla_use_output_gate"] = true; }, u, {"mla_use_output_gate", "K3"}},
       {[](Json& j) { j["attn_res_block_size"] = 12; }, u, {"attn_res_block_size", "12", "K3"}},
       {[](Json& j) { j["routed_expert_hidden_size"] = 512; }, u, {"routed_expert_hidden_size", "512", "K3"}},
       {[](Json& j) { j["dense_ffn_hidden"] = 512; }, u, {"dense_ffn_hidden", "512", "K3"}},
       {[](Json& j) { j["linear_attn_config"]["expand_v"] = 2; }, u, {"linear_attn_config.expand_v", "2"}},
       {[](Json& j) { j["hidden_act"] = "situ"; }, u, {"hidden_act", "situ", "silu"}},
       {[](Json& j) { j["moe_router_activation_func"] = "softmax"; }, u, {"moe_router_activation_func", "softmax", "sigmoid"}},
       {[](Json& j) { j["mla_use_nope"] = false; }, u, {"mla_use_nope", "false", "rotary"}},
       {[](Json& j) { j["q_lora_rank"] = 1536; }, u, {"q_lora_rank", "1536", "null"}},
       {[](Json& j) { j["num_nextn_predict_layers"] = 1; }, u, {"num_nextn_predict_layers", "1", "expected 0"}},
       {[](Json& j) { j["num_nextn_predict_layers"] = -1; }, c, {"num_nextn_predict_layers", "-1"}},
       {[](Json& j) { j["num_key_value_heads"] = 8; }, u, {"num_key_value_heads", "8", "32"}},
       {[](Json& j) {
          j["rope_scaling"] = {{"type", "yarn"}, {"factor", 4}};
        },
        u,
        {"rope_scaling", "yarn"}},
       {[](Json& j) {
          j["rope_scaling"] = {{"factor", 4}};
        },
        u,
        {"rope_scaling", "factor"}},
       {[](Json& j) { j["rope_scaling"] = 2; }, c, {"rope_scaling", "2"}},
       {[](Json& j) {
          j["rope_parameters"] = {{"rope_type", "llama3"}};
        },
        u,
        {"rope_parameters", "llama3"}},
       {[](Json& j) { j["attention_bias"] = true; }, u, {"attention_bias"}},
       {[](Json& j) { j["linear_key_head_dim"] = 128, j["linear_value_head_dim"] = 256; },
        u,
        {"linear_key_head_dim", "128", "linear_value_head_dim", "256"}},
       {[](Json& j) { j["dtype"] = "float8_e4m3fn"; }, u, {"dtype", "float8_e4m3fn", "bfloat16"}},
       {[](Json& j) {
          j["quantization_config"] = {{"bits", 4}};
        },
        u,
        {"quantization_config", "quant_method"}},
       {[](Json& j) { j["quantization_config"] = "fp8"; }, c, {"quantization_config", "object"}}});
  for (const char* method : {"fp8", "awq", "gptq", "compressed-tensors", "bitsandbytes", "mxfp4"}) {
    Json json = published_config();
    json["quantization_config"] = {{"quant_method", method}};
    EXPECT_NE(refusal(parse_text, json.dump()).find(method), std::string::npos) << method;
  }
}

}  // namespace
}  // namespace kilin

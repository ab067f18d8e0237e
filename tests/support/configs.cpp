#include "support/configs.h"

#include <gtest/gtest.h>

#include "support/golden.h"

namespace kilin::testing {

Json published_config() { return read_json(in_repository("tests/golden/real/config.json")); }

Json in_transformers_form(const Json& published) {
  Json other = published;
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

std::string refusal(const ParseConfig& parse, const std::string& text, ErrorCode* code) {
  try {
    parse(text);
    return "";
  } catch (const Error& error) {
    if (code != nullptr) *code = error.code();
    return error.what();
  }
}

void expect_refused(const ParseConfig& parse, const Json& base, const std::vector<BadConfig>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const BadConfig& bad = cases[i];
    Json json = base;
    bad.edit(json);
    ErrorCode code{};
    const std::string message = refusal(parse, json.dump(), &code);
    EXPECT_EQ(code, bad.code) << "case " << i << ": " << message;
    EXPECT_TRUE(message.starts_with("config.json: ")) << "case " << i << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const char* word : bad.words)
      EXPECT_NE(message.find(word), std::string::npos) << "case " << i << ": no \"" << word << "\" in: " << message;
  }
}

}  // namespace kilin::testing

#include "config/unsupported_models.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace kilin {

namespace {

constexpr std::string_view kArchitecture = "KimiLinearForCausalLM";

void check_architecture(const ConfigReader& in) {
  const auto architectures = in.optional_strings("architectures");
  if (!architectures) in.missing({"architectures"}, "[\"KimiLinearForCausalLM\"]");
  if (architectures->size() != 1 || architectures->front() != kArchitecture)
    in.unsupported("key 'architectures' is {}; expected [\"{}\"]: Kilin runs the Kimi-Linear family only",
                   shown(*in.find("architectures")), kArchitecture);
  const std::string type = in.string({"model_type"});
  if (type != "kimi_linear") in.unsupported("key 'model_type' is '{}'; expected 'kimi_linear'", printable(type));
}

// Kimi K3's text part also calls itself kimi_linear, and has more keys. transformers writes some of these, with neutral values,
// for every model.
void check_kimi_k3(const ConfigReader& in) {
  for (const std::string_view inside : {"", "linear_attn_config."})
    for (const std::string_view key :
         {"gate_lower_bound", "forget_gate_lower_bound", "use_full_rank_gate", "use_full_rank_output_gate",
          "mla_use_output_gate", "attn_res_block_size", "routed_expert_hidden_size"}) {
      const std::string name = std::string(inside) + std::string(key);
      const Json* value = in.find(name);
      if (value == nullptr || value->is_null() || *value == false || (key == "attn_res_block_size" && *value == 0)) continue;
      in.unsupported("key '{}' is {}; expected none: it belongs to Kimi K3, which Kilin does not run", name, shown(*value));
    }
  const Json* dense = in.find("dense_ffn_hidden");
  const Json* width = in.find("intermediate_size");
  if (dense != nullptr && !dense->is_null() && (width == nullptr || *dense != *width))
    in.unsupported(
        "key 'dense_ffn_hidden' is {}; expected none, or intermediate_size: it belongs to Kimi K3, which Kilin does not run",
        shown(*dense));
}

// Everything inside linear_attn_config changes the recurrence, so unknown keys there can't be ignored.
void check_linear_attn_config(const ConfigReader& in) {
  const Json* config = in.find("linear_attn_config");
  if (config == nullptr || config->is_null()) return;
  if (!config->is_object()) in.wrong("linear_attn_config", *config, "an object");
  constexpr std::array<std::string_view, 5> known = {"full_attn_layers", "head_dim", "kda_layers", "num_heads",
                                                     "short_conv_kernel_size"};
  for (const auto& [key, value] : config->items())
    if (!value.is_null() && value != false && std::find(known.begin(), known.end(), key) == known.end())
      in.unsupported(
          "key 'linear_attn_config.{}' is {}; expected only full_attn_layers, head_dim, kda_layers, num_heads and "
          "short_conv_kernel_size",
          printable(key), shown(value));
}

void check_quantization(const ConfigReader& in) {
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    const Json* config = in.find(key);
    if (config == nullptr || config->is_null()) continue;
    if (!config->is_object()) in.wrong(key, *config, "null or an object");
    const auto method = config->find("quant_method");
    in.unsupported("key '{}' has quant_method {}; expected none: Kilin reads bf16, f16 and f32 weights from safetensors", key,
                   method == config->end() ? "(none given)" : shown(*method));
  }
}

void check_attention(const ConfigReader& in, bool transformers_form) {
  // transformers' own class of this model has no rotary embeddings and no such key.
  const auto nope = transformers_form ? in.optional_boolean({"mla_use_nope"}) : in.boolean({"mla_use_nope"});
  if (nope == false) in.unsupported("key 'mla_use_nope' is false; expected true: Kilin has no rotary embeddings");
  const Json* q_lora = in.find("q_lora_rank");
  if (q_lora != nullptr && !q_lora->is_null())
    in.unsupported("key 'q_lora_rank' is {}; expected null: Kilin has no q_a_proj and q_b_proj", shown(*q_lora));
  // No channel is rotated, so rope_theta has no effect; but elsewhere a rope scaling also changes the scale of the softmax.
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const Json* rope = in.find(key);
    if (rope == nullptr || rope->is_null()) continue;
    if (!rope->is_object()) in.wrong(key, *rope, "null or an object");
    for (const char* type : {"rope_type", "type"})
      if (const auto at = rope->find(type); at != rope->end() && *at != "default")
        in.unsupported("key '{}' has {} {}; expected null: Kilin has no rotary embeddings", key, type, shown(*at));
    if (key == "rope_scaling" && !rope->contains("rope_type") && !rope->contains("type"))
      in.unsupported("key 'rope_scaling' is {}; expected null: Kilin has no rotary embeddings", shown(*rope));
  }
  for (const std::string_view key : {"attention_bias", "mlp_bias"})
    if (in.optional_boolean({key}) == true) in.unsupported("key '{}' is true; expected false: no linear layer has a bias", key);
  const auto multi_token = in.optional_size({"num_nextn_predict_layers"}, 0, UINT64_MAX);
  if (multi_token.value_or(0) != 0)
    in.unsupported("key 'num_nextn_predict_layers' is {}; expected 0: Kilin has no multi-token head", *multi_token);
}

void check_activations(const ConfigReader& in, bool transformers_form) {
  const std::string activation = in.string({"hidden_act"});
  if (activation != "silu") in.unsupported("key 'hidden_act' is '{}'; expected 'silu'", printable(activation));
  constexpr std::string_view kRouter = "moe_router_activation_func", kScoring = "scoring_func";
  const auto router = transformers_form ? in.optional_string({kRouter, kScoring}) : in.string({kRouter, kScoring});
  if (router.value_or("sigmoid") != "sigmoid")
    in.unsupported("key '{}' is '{}'; expected 'sigmoid'", in.find(kRouter) != nullptr ? kRouter : kScoring,
                   printable(*router));
}

}  // namespace

void refuse_other_models(const ConfigReader& in) {
  check_architecture(in);
  check_kimi_k3(in);
  check_linear_attn_config(in);
  check_quantization(in);
  // Keys that transformers' own class lacks because it fixes their value.
  const bool transformers_form = in.optional_strings("layer_types").has_value();
  check_attention(in, transformers_form);
  check_activations(in, transformers_form);
}

}  // namespace kilin

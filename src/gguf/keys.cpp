#include "gguf/keys.h"

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "gguf/byte_characters.h"

namespace kilin {

namespace {

// llama.cpp's numbers for what most of a file is quantised to: general.file_type.
uint32_t file_type(std::optional<QuantType> type) {
  if (!type) return 32;  // bf16
  switch (*type) {
    case QuantType::q4_0:
      return 2;
    case QuantType::q8_0:
      return 7;
    case QuantType::q4_k_m:
      return 15;
    case QuantType::q5_k_m:
      return 17;
    case QuantType::q6_k:
      return 18;
  }
  return 32;
}

// Dense layers, which must come first.
size_t leading_dense_layers(const ModelConfig& c) {
  size_t dense = 0;
  while (dense < c.num_hidden_layers && !c.is_moe(dense)) ++dense;
  for (size_t layer = dense; layer < c.num_hidden_layers; ++layer)
    if (!c.is_moe(layer))
      raise(ErrorCode::Unsupported,
            "layer {} is dense and stands behind layers with experts; GGUF can say only that the first are", layer);
  return dense;
}

}  // namespace

GgufKeys gguf_keys(const ModelConfig& c, const std::string& name, std::optional<QuantType> type) {
  if (c.kda_num_heads != c.num_attention_heads)
    raise(ErrorCode::Unsupported, "the model has {} heads in KDA layers and {} in MLA layers; GGUF has one number for both",
          c.kda_num_heads, c.num_attention_heads);
  if (c.num_expert_group != 1)
    raise(ErrorCode::Unsupported,
          "the model has {} groups of experts; llama.cpp routes among all of them, so only 1 can be written",
          c.num_expert_group);
  std::vector<int32_t> head_count_kv;  // 0 marks a KDA layer
  for (size_t layer = 0; layer < c.num_hidden_layers; ++layer) head_count_kv.push_back(c.is_kda(layer) ? 0 : 1);

  GgufKeys keys;
  keys.add_string("general.architecture", "kimi-linear");
  keys.add_string("general.type", "model");
  keys.add_string("general.name", name);
  keys.add_u32("general.file_type", file_type(type));
  keys.add_u32("general.quantization_version", 2);
  const auto add = [&](std::string_view key, size_t value) {
    keys.add_u32(fmt::format("kimi-linear.{}", key), static_cast<uint32_t>(value));
  };
  add("vocab_size", c.vocab_size);
  add("context_length", c.model_max_length);
  add("embedding_length", c.hidden_size);
  add("block_count", c.num_hidden_layers);
  add("feed_forward_length", c.intermediate_size);
  add("attention.head_count", c.num_attention_heads);
  keys.add_i32s("kimi-linear.attention.head_count_kv", head_count_kv);
  keys.add_f32("kimi-linear.attention.layer_norm_rms_epsilon", static_cast<float>(c.rms_norm_eps));
  add("attention.kv_lora_rank", c.kv_lora_rank);
  add("attention.key_length", c.mla_latent_width());
  add("attention.value_length", c.kv_lora_rank);
  add("attention.key_length_mla", c.qk_head_dim());
  add("attention.value_length_mla", c.v_head_dim);
  add("rope.dimension_count", c.qk_rope_head_dim);
  keys.add_f32("kimi-linear.rope.freq_base", 10000.0f);  // nothing is rotated; llama.cpp wants the key
  add("ssm.conv_kernel", c.short_conv_kernel_size);
  add("kda.head_dim", c.kda_head_dim);
  add("expert_count", c.num_experts);
  add("expert_used_count", c.num_experts_per_token);
  add("expert_shared_count", c.num_shared_experts);
  add("expert_feed_forward_length", c.moe_intermediate_size);
  add("leading_dense_block_count", leading_dense_layers(c));
  keys.add_f32("kimi-linear.expert_weights_scale", static_cast<float>(c.routed_scaling_factor));
  keys.add_bool("kimi-linear.expert_weights_norm", c.moe_renormalize);
  add("expert_gating_func", 2);  // sigmoid
  const auto add_id = [&](std::string_view key, std::optional<int32_t> id) {
    if (id) keys.add_u32(fmt::format("tokenizer.ggml.{}_token_id", key), static_cast<uint32_t>(*id));
  };
  add_id("bos", c.bos_token_id);
  // The format has two keys for what ends an answer; more ends, and those of the chat format, are found by their names.
  constexpr std::string_view kEnds[] = {"eos", "eot"};
  for (size_t i = 0; i < std::min(c.eos_token_ids.size(), std::size(kEnds)); ++i) add_id(kEnds[i], c.eos_token_ids[i]);
  add_id("padding", c.pad_token_id);
  return keys;
}

void append_gguf_vocabulary(const Tokenizer& tokenizer, const ModelConfig& config, GgufKeys& keys) {
  enum : int32_t { kNormal = 1, kControl = 3, kUnused = 5 };
  std::vector<std::string> tokens, merges;
  std::vector<int32_t> kinds;
  for (size_t i = 0; i < config.vocab_size; ++i) {
    const auto id = static_cast<int32_t>(i);
    if (i >= tokenizer.size()) {
      tokens.push_back(fmt::format("[PAD{}]", i));
      kinds.push_back(kUnused);
    } else if (tokenizer.is_special(id)) {
      tokens.emplace_back(tokenizer.token_bytes(id));
      kinds.push_back(kControl);
    } else {
      tokens.push_back(as_characters(tokenizer.token_bytes(id)));
      kinds.push_back(kNormal);
      if (const auto parts = tokenizer.parts_of(id))
        merges.push_back(as_characters(parts->first) + " " + as_characters(parts->second));
    }
  }
  keys.add_string("tokenizer.ggml.model", "gpt2");
  keys.add_string("tokenizer.ggml.pre", "kimi-k2");
  keys.add_strings("tokenizer.ggml.tokens", tokens);
  keys.add_i32s("tokenizer.ggml.token_type", kinds);
  keys.add_strings("tokenizer.ggml.merges", merges);
  keys.add_bool("tokenizer.ggml.add_bos_token", false);
}

}  // namespace kilin

#include "config/model_config.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/config_bounds.h"
#include "config/config_reader.h"
#include "config/layer_kinds.h"
#include "config/unsupported_models.h"
#include "core/file.h"
#include "kernels/kernel_table.h"

namespace kilin {

namespace {

constexpr ExpertKeys kExpertKeys = {.layers = "num_hidden_layers",
                                    .experts = "num_experts",
                                    .experts_per_token = "num_experts_per_token",
                                    .groups = "num_expert_group",
                                    .groups_per_token = "topk_group"};

void read_mla(const ConfigReader& in, ModelConfig& c) {
  c.num_attention_heads = in.size({"num_attention_heads"}, 1, kMaxWidth);
  c.kv_lora_rank = in.size({"kv_lora_rank"}, 1, kMaxWidth);
  c.qk_nope_head_dim = in.size({"qk_nope_head_dim"}, 1, kMaxWidth);
  c.qk_rope_head_dim = in.size({"qk_rope_head_dim"}, 1, kMaxWidth);
  c.v_head_dim = in.size({"v_head_dim"}, 1, kMaxWidth);
  // Latent attention keeps no keys per head; another number of key-value heads would mean another model.
  const auto kv_heads = in.optional_size({"num_key_value_heads"}, 1, kMaxWidth);
  if (kv_heads && *kv_heads != c.num_attention_heads)
    in.unsupported("key 'num_key_value_heads' is {}; expected {}, as num_attention_heads", *kv_heads, c.num_attention_heads);
}

void read_kda(const ConfigReader& in, ModelConfig& c) {
  // Kilin's states are square, as the published model's are; transformers can give keys and values different sizes.
  const std::array<std::pair<std::string_view, std::string_view>, 2> equal = {
      {{"linear_key_head_dim", "linear_value_head_dim"}, {"linear_num_key_heads", "linear_num_value_heads"}}};
  for (const auto& [keys, values] : equal) {
    const auto k = in.optional_size({keys}, 1, kMaxWidth), v = in.optional_size({values}, 1, kMaxWidth);
    if (k && v && *k != *v) in.unsupported("keys '{}' ({}) and '{}' ({}) differ; expected equal ones", keys, *k, values, *v);
  }
  c.kda_num_heads = in.size(
      {"linear_attn_config.num_heads", "linear_num_heads", "linear_num_key_heads", "linear_num_value_heads"}, 1, kMaxWidth);
  c.kda_head_dim =
      in.size({"linear_attn_config.head_dim", "linear_head_dim", "linear_key_head_dim", "linear_value_head_dim"}, 1, kMaxWidth);
  c.short_conv_kernel_size = in.size({"linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim"}, 2, kMaxConvWidth);
}

void read_moe(const ConfigReader& in, ModelConfig& c) {
  c.num_experts = in.size({"num_experts", "num_local_experts", "n_routed_experts"}, 1, kMaxExperts);
  c.num_experts_per_token = in.size({"num_experts_per_token", "num_experts_per_tok"}, 1, c.num_experts);
  c.num_shared_experts = in.size({"num_shared_experts", "n_shared_experts"}, 1, kMaxWidth);
  c.moe_intermediate_size = in.size({"moe_intermediate_size"}, 1, kMaxWidth);
  c.moe_renormalize = in.boolean({"moe_renormalize", "norm_topk_prob"});
  c.routed_scaling_factor = in.real({"routed_scaling_factor"}, 1e-6, 1e6);

  c.num_expert_group = in.size({"num_expert_group", "n_group"}, 1, c.num_experts);
  c.topk_group = in.size({"topk_group"}, 1, c.num_expert_group);
  check_experts(in, c, kExpertKeys);
  if (c.num_expert_group > 1 && in.optional_boolean({"use_grouped_topk"}) == false)
    in.corrupt("key 'use_grouped_topk' is false and num_expert_group is {}; expected true, or one group", c.num_expert_group);
}

std::optional<int32_t> token_id(const ConfigReader& in, std::string_view key, size_t vocab_size) {
  const auto id = in.optional_size({key}, 0, vocab_size - 1);
  return id ? std::optional(static_cast<int32_t>(*id)) : std::nullopt;
}

// One id, or a list of them.
std::vector<int32_t> read_eos(const ConfigReader& in, size_t vocab_size) {
  constexpr std::string_view kKey = "eos_token_id";
  const Json* value = in.find(kKey);
  const std::string expected = fmt::format("a token id in 0..{}, or a list of them", vocab_size - 1);
  if (value == nullptr) in.missing({kKey}, expected);
  std::vector<int32_t> ids;
  if (value->is_array()) {
    if (value->empty()) in.wrong(kKey, *value, expected);
    const auto list = in.optional_sizes(kKey, 0, vocab_size - 1);
    std::transform(list->begin(), list->end(), std::back_inserter(ids), [](size_t id) { return static_cast<int32_t>(id); });
  } else {
    if (!value->is_number_unsigned()) in.wrong(kKey, *value, expected);
    ids.push_back(*token_id(in, kKey, vocab_size));
  }
  return ids;
}

std::string read_dtype(const ConfigReader& in) {
  const auto dtype = in.optional_string({"dtype", "torch_dtype"});
  if (dtype && *dtype != "bfloat16" && *dtype != "float16" && *dtype != "float32")
    in.unsupported("key '{}' is '{}'; expected bfloat16, float16 or float32",
                   in.find("dtype") != nullptr ? "dtype" : "torch_dtype", printable(*dtype));
  return dtype.value_or("");
}

}  // namespace

size_t ModelConfig::kda_layers() const {
  return static_cast<size_t>(std::count(attention_kinds.begin(), attention_kinds.end(), AttentionKind::Kda));
}

size_t ModelConfig::mla_layers() const { return attention_kinds.size() - kda_layers(); }

ModelConfig ModelConfig::read(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  return parse(read_file(file), file.string());
}

ModelConfig ModelConfig::parse(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  const ConfigReader in(json, source);
  refuse_other_models(in);

  ModelConfig c;
  c.vocab_size = in.size({"vocab_size"}, 1, kMaxVocabulary);
  c.hidden_size = in.size({"hidden_size"}, 1, kMaxHidden);
  c.num_hidden_layers = in.size({"num_hidden_layers"}, 1, kMaxLayers);
  c.intermediate_size = in.size({"intermediate_size"}, 1, kMaxWidth);
  c.rms_norm_eps = in.real({"rms_norm_eps"}, 1e-12, 1);
  c.tie_word_embeddings = in.boolean({"tie_word_embeddings"});
  c.model_max_length = in.size({"model_max_length", "max_position_embeddings"}, 1, kMaxPositions);
  read_mla(in, c);
  read_kda(in, c);
  read_moe(in, c);
  check_widths(in, c);
  c.attention_kinds = read_attention_kinds(in, c.num_hidden_layers);
  c.feed_forward_kinds = read_feed_forward_kinds(in, c.num_hidden_layers);
  c.eos_token_ids = read_eos(in, c.vocab_size);
  c.bos_token_id = token_id(in, "bos_token_id", c.vocab_size);
  c.pad_token_id = token_id(in, "pad_token_id", c.vocab_size);
  c.dtype = read_dtype(in);
  return c;
}

}  // namespace kilin

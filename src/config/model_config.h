// What config.json says about a Kimi-Linear model, under the names of the published file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kilin {

enum class AttentionKind : uint8_t { Kda, Mla };
enum class FeedForwardKind : uint8_t { Dense, Moe };

/// Every value was read and checked: nothing here is a default. Sizes are at least 1 and bounded so that no product of a few of
/// them overflows. Layers count from 0.
struct ModelConfig {
  size_t vocab_size = 0;
  size_t hidden_size = 0;
  size_t num_hidden_layers = 0;
  size_t intermediate_size = 0;  ///< width of the dense layers' MLP
  double rms_norm_eps = 0;
  bool tie_word_embeddings = false;
  size_t model_max_length = 0;

  // Latent attention
  size_t num_attention_heads = 0;
  size_t kv_lora_rank = 0;
  size_t qk_nope_head_dim = 0;
  size_t qk_rope_head_dim = 0;  ///< kept, never rotated
  size_t v_head_dim = 0;

  // Kimi Delta Attention: linear_attn_config
  size_t kda_num_heads = 0;
  size_t kda_head_dim = 0;  ///< of keys and of values
  size_t short_conv_kernel_size = 0;

  // Mixture of experts
  size_t num_experts = 0;
  size_t num_experts_per_token = 0;
  size_t num_shared_experts = 0;
  size_t moe_intermediate_size = 0;
  bool moe_renormalize = false;
  double routed_scaling_factor = 0;
  size_t num_expert_group = 0;
  size_t topk_group = 0;

  std::vector<AttentionKind> attention_kinds;       ///< a layer each
  std::vector<FeedForwardKind> feed_forward_kinds;  ///< a layer each

  std::vector<int32_t> eos_token_ids;  ///< at least one from config.json; a GGUF file without a tokeniser names none
  std::optional<int32_t> bos_token_id;
  std::optional<int32_t> pad_token_id;
  std::string dtype;  ///< "bfloat16", ...: the file's word for its weights' type; empty if it has none

  bool is_kda(size_t layer) const { return attention_kinds[layer] == AttentionKind::Kda; }
  bool is_mla(size_t layer) const { return attention_kinds[layer] == AttentionKind::Mla; }
  bool is_moe(size_t layer) const { return feed_forward_kinds[layer] == FeedForwardKind::Moe; }
  size_t kda_layers() const;
  size_t mla_layers() const;

  size_t kda_width() const { return kda_num_heads * kda_head_dim; }           ///< P: channels of q, of k and of v
  size_t qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }  ///< of an MLA query or key
  size_t mla_query_width() const { return num_attention_heads * qk_head_dim(); }
  size_t mla_value_width() const { return num_attention_heads * v_head_dim; }
  size_t mla_kv_width() const { return num_attention_heads * (qk_nope_head_dim + v_head_dim); }
  size_t mla_latent_width() const { return kv_lora_rank + qk_rope_head_dim; }  ///< values cached for a token
  size_t shared_expert_width() const { return num_shared_experts * moe_intermediate_size; }

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;

  /// Reads config.json of a folder. @throws NotFound, Io, and as parse
  static ModelConfig read(const std::filesystem::path& folder);

  /// Reads the published form and transformers' own (layer_types, n_group, linear_head_dim, ...). A key may stand under several
  /// of its names if they agree.
  /// @param source names the text in errors. @throws Corrupt for a value that is missing, contradictory, of a wrong type or out
  /// of range; Unsupported for a model that Kilin does not run. Every message names the key, its value and what was expected.
  static ModelConfig parse(std::string_view text, const std::string& source);
};

}  // namespace kilin

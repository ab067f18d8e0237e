#include "config/config_bounds.h"

namespace kilin {

namespace {

// The factors are bounded by kMaxWidth, so that a product of two does not overflow.
void check_width(const ConfigReader& in, size_t width, std::string_view words) {
  if (width > kMaxWidth) in.corrupt("{} is {}; expected at most {}", words, width, kMaxWidth);
}

}  // namespace

void check_widths(const ConfigReader& in, const ModelConfig& c) {
  check_width(in, c.mla_query_width(), "num_attention_heads x (qk_nope_head_dim + qk_rope_head_dim)");
  check_width(in, c.mla_kv_width(), "num_attention_heads x (qk_nope_head_dim + v_head_dim)");
  check_width(in, c.mla_latent_width(), "kv_lora_rank + qk_rope_head_dim");
  check_width(in, c.kda_width(), "linear_attn_config.num_heads x head_dim");
  check_width(in, c.shared_expert_width(), "num_shared_experts x moe_intermediate_size");
}

void check_experts(const ConfigReader& in, const ModelConfig& c, const ExpertKeys& keys) {
  if (c.num_experts * c.num_hidden_layers > kMaxLayersTimesExperts)
    in.corrupt("{} ({}) x {} ({}) is {}; expected at most {}", keys.experts, c.num_experts, keys.layers, c.num_hidden_layers,
               c.num_experts * c.num_hidden_layers, kMaxLayersTimesExperts);
  if (c.num_experts % c.num_expert_group != 0)
    in.corrupt("{} ({}) does not divide {} ({}); expected groups of equal size", keys.groups, c.num_expert_group, keys.experts,
               c.num_experts);
  const size_t experts_per_group = c.num_experts / c.num_expert_group;
  // A group is scored by the sum of its two best experts.
  if (c.num_expert_group > 1 && experts_per_group < 2)
    in.corrupt("{} is {} for {} experts ({}); expected groups of at least 2", keys.groups, c.num_expert_group, c.num_experts,
               keys.experts);
  if (c.num_experts_per_token > c.topk_group * experts_per_group)
    in.corrupt("{} is {}; expected at most {}, the experts of {} ({}) groups", keys.experts_per_token, c.num_experts_per_token,
               c.topk_group * experts_per_group, keys.groups_per_token, c.topk_group);
}

}  // namespace kilin

#include "weights/weight_map.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"

namespace kilin {

namespace {

using Config = const ModelConfig&;

// What the extents are called in messages: the keys of config.json that they come from.
constexpr Extent kOne = {[](Config) { return size_t{1}; }, "1"};
constexpr Extent kVocabulary = {[](Config c) { return c.vocab_size; }, "vocab_size"};
constexpr Extent kHidden = {[](Config c) { return c.hidden_size; }, "hidden_size"};
constexpr Extent kDenseWidth = {[](Config c) { return c.intermediate_size; }, "intermediate_size"};
constexpr Extent kKdaHeads = {[](Config c) { return c.kda_num_heads; }, "linear_attn_config.num_heads"};
constexpr Extent kKdaHeadDim = {[](Config c) { return c.kda_head_dim; }, "linear_attn_config.head_dim"};
constexpr Extent kKdaWidth = {[](Config c) { return c.kda_width(); }, "linear_attn_config.num_heads x head_dim"};
constexpr Extent kConvWidth = {[](Config c) { return c.short_conv_kernel_size; }, "linear_attn_config.short_conv_kernel_size"};
constexpr Extent kQueryWidth = {[](Config c) { return c.mla_query_width(); },
                                "num_attention_heads x (qk_nope_head_dim + qk_rope_head_dim)"};
constexpr Extent kLatentWidth = {[](Config c) { return c.mla_latent_width(); }, "kv_lora_rank + qk_rope_head_dim"};
constexpr Extent kLatentRank = {[](Config c) { return c.kv_lora_rank; }, "kv_lora_rank"};
constexpr Extent kKvWidth = {[](Config c) { return c.mla_kv_width(); },
                             "num_attention_heads x (qk_nope_head_dim + v_head_dim)"};
constexpr Extent kValueWidth = {[](Config c) { return c.mla_value_width(); }, "num_attention_heads x v_head_dim"};
constexpr Extent kExperts = {[](Config c) { return c.num_experts; }, "num_experts"};
constexpr Extent kExpertWidth = {[](Config c) { return c.moe_intermediate_size; }, "moe_intermediate_size"};
constexpr Extent kSharedWidth = {[](Config c) { return c.shared_expert_width(); },
                                 "num_shared_experts x moe_intermediate_size"};

template <const Extent&... extents>
constexpr std::array<Extent, sizeof...(extents)> kShape = {extents...};

constexpr std::array<DType, 3> kWeight = {DType::bf16, DType::f16, DType::f32};
constexpr std::array<DType, 3> kParameter = {DType::f32, DType::bf16, DType::f16};

using enum OncePer;
using enum WeightUse;
using enum ShardRule;

// Linear weights are stored [out, in]. No linear layer has a bias.
constexpr WeightPattern kPatterns[] = {
    {"model.embed_tokens.weight", "KimiLinearForCausalLM.embed_tokens", Model, kShape<kVocabulary, kHidden>, Table, kWeight,
     Vocabulary},
    {"model.norm.weight", "KimiLinearForCausalLM.norm", Model, kShape<kHidden>, Parameter, kWeight, Replicated},
    {"lm_head.weight", "KimiLinearForCausalLM.lm_head", UntiedModel, kShape<kVocabulary, kHidden>, LmHead, kWeight, Vocabulary},

    {"model.layers.L.input_layernorm.weight", "KimiDecoderLayer.input_layernorm", Layer, kShape<kHidden>, Parameter, kWeight,
     Replicated},
    {"model.layers.L.post_attention_layernorm.weight", "KimiDecoderLayer.post_attention_layernorm", Layer, kShape<kHidden>,
     Parameter, kWeight, Replicated},

    {"model.layers.L.self_attn.q_proj.weight", "KimiDeltaAttention.q_proj", KdaLayer, kShape<kKdaWidth, kHidden>, Product,
     kWeight, Columns},
    {"model.layers.L.self_attn.k_proj.weight", "KimiDeltaAttention.k_proj", KdaLayer, kShape<kKdaWidth, kHidden>, Product,
     kWeight, Columns},
    {"model.layers.L.self_attn.v_proj.weight", "KimiDeltaAttention.v_proj", KdaLayer, kShape<kKdaWidth, kHidden>,
     SensitiveProduct, kWeight, Columns},
    {"model.layers.L.self_attn.q_conv1d.weight", "KimiDeltaAttention.q_conv1d", KdaLayer, kShape<kKdaWidth, kOne, kConvWidth>,
     Parameter, kWeight, Heads},
    {"model.layers.L.self_attn.k_conv1d.weight", "KimiDeltaAttention.k_conv1d", KdaLayer, kShape<kKdaWidth, kOne, kConvWidth>,
     Parameter, kWeight, Heads},
    {"model.layers.L.self_attn.v_conv1d.weight", "KimiDeltaAttention.v_conv1d", KdaLayer, kShape<kKdaWidth, kOne, kConvWidth>,
     Parameter, kWeight, Heads},
    {"model.layers.L.self_attn.A_log", "KimiDeltaAttention.A_log", KdaLayer, kShape<kOne, kOne, kKdaHeads, kOne>, Parameter,
     kParameter, Heads, true},
    {"model.layers.L.self_attn.dt_bias", "KimiDeltaAttention.dt_bias", KdaLayer, kShape<kKdaWidth>, Parameter, kParameter,
     Heads, true},
    {"model.layers.L.self_attn.f_a_proj.weight", "KimiDeltaAttention.f_a_proj", KdaLayer, kShape<kKdaHeadDim, kHidden>,
     ExactProduct, kWeight, Replicated},
    {"model.layers.L.self_attn.f_b_proj.weight", "KimiDeltaAttention.f_b_proj", KdaLayer, kShape<kKdaWidth, kKdaHeadDim>,
     ExactProduct, kWeight, Columns},
    {"model.layers.L.self_attn.b_proj.weight", "KimiDeltaAttention.b_proj", KdaLayer, kShape<kKdaHeads, kHidden>, ExactProduct,
     kWeight, Columns},
    {"model.layers.L.self_attn.g_a_proj.weight", "KimiDeltaAttention.g_a_proj", KdaLayer, kShape<kKdaHeadDim, kHidden>,
     ExactProduct, kWeight, Replicated},
    {"model.layers.L.self_attn.g_b_proj.weight", "KimiDeltaAttention.g_b_proj", KdaLayer, kShape<kKdaWidth, kKdaHeadDim>,
     ExactProduct, kWeight, Columns},
    {"model.layers.L.self_attn.o_norm.weight", "KimiDeltaAttention.o_norm", KdaLayer, kShape<kKdaHeadDim>, Parameter, kWeight,
     Replicated},
    {"model.layers.L.self_attn.o_proj.weight", "KimiDeltaAttention.o_proj", KdaLayer, kShape<kHidden, kKdaWidth>, Product,
     kWeight, Rows},

    {"model.layers.L.self_attn.q_proj.weight", "KimiMlaAttention.q_proj", MlaLayer, kShape<kQueryWidth, kHidden>, Product,
     kWeight, Columns},
    {"model.layers.L.self_attn.kv_a_proj_with_mqa.weight", "KimiMlaAttention.kv_a_proj_with_mqa", MlaLayer,
     kShape<kLatentWidth, kHidden>, Product, kWeight, Replicated},
    {"model.layers.L.self_attn.kv_a_layernorm.weight", "KimiMlaAttention.kv_a_layernorm", MlaLayer, kShape<kLatentRank>,
     Parameter, kWeight, Replicated},
    {"model.layers.L.self_attn.kv_b_proj.weight", "KimiMlaAttention.kv_b_proj", MlaLayer, kShape<kKvWidth, kLatentRank>, Dense,
     kWeight, Columns},
    {"model.layers.L.self_attn.o_proj.weight", "KimiMlaAttention.o_proj", MlaLayer, kShape<kHidden, kValueWidth>, Product,
     kWeight, Rows},

    {"model.layers.L.mlp.gate_proj.weight", "KimiMlp.gate_proj", DenseLayer, kShape<kDenseWidth, kHidden>, Product, kWeight,
     Columns},
    {"model.layers.L.mlp.up_proj.weight", "KimiMlp.up_proj", DenseLayer, kShape<kDenseWidth, kHidden>, Product, kWeight,
     Columns},
    {"model.layers.L.mlp.down_proj.weight", "KimiMlp.down_proj", DenseLayer, kShape<kHidden, kDenseWidth>, SensitiveProduct,
     kWeight, Rows},

    {"model.layers.L.block_sparse_moe.gate.weight", "KimiMoe.gate", MoeLayer, kShape<kExperts, kHidden>, ExactProduct, kWeight,
     Replicated},
    {"model.layers.L.block_sparse_moe.gate.e_score_correction_bias", "KimiMoe.e_score_correction_bias", MoeLayer,
     kShape<kExperts>, Parameter, kWeight, Replicated},
    {"model.layers.L.block_sparse_moe.experts.E.w1.weight", "KimiMoe.experts.w1", Expert, kShape<kExpertWidth, kHidden>,
     Product, kWeight, ExpertsThenColumns},
    {"model.layers.L.block_sparse_moe.experts.E.w3.weight", "KimiMoe.experts.w3", Expert, kShape<kExpertWidth, kHidden>,
     Product, kWeight, ExpertsThenColumns},
    {"model.layers.L.block_sparse_moe.experts.E.w2.weight", "KimiMoe.experts.w2", Expert, kShape<kHidden, kExpertWidth>,
     SensitiveProduct, kWeight, ExpertsThenRows},
    {"model.layers.L.block_sparse_moe.shared_experts.gate_proj.weight", "KimiMoe.shared_experts.gate_proj", MoeLayer,
     kShape<kSharedWidth, kHidden>, Product, kWeight, Columns},
    {"model.layers.L.block_sparse_moe.shared_experts.up_proj.weight", "KimiMoe.shared_experts.up_proj", MoeLayer,
     kShape<kSharedWidth, kHidden>, Product, kWeight, Columns},
    {"model.layers.L.block_sparse_moe.shared_experts.down_proj.weight", "KimiMoe.shared_experts.down_proj", MoeLayer,
     kShape<kHidden, kSharedWidth>, SensitiveProduct, kWeight, Rows},
};

Shape shape_of(const WeightPattern& pattern, const ModelConfig& config) {
  std::array<size_t, Shape::kMaxRank> extents{};
  for (size_t axis = 0; axis < pattern.shape.size(); ++axis) extents[axis] = pattern.shape[axis].value(config);
  return Shape(std::span<const size_t>(extents.data(), pattern.shape.size()));
}

// Puts a number in the place of a pattern's component "L" or "E".
std::string with_index(std::string_view pattern, std::string_view component, size_t index) {
  const size_t at = pattern.find(component);
  return std::string(pattern.substr(0, at + 1)) + std::to_string(index) +
         std::string(pattern.substr(at + component.size() - 1));
}

bool is_in(OncePer once_per, const ModelConfig& config, size_t layer) {
  switch (once_per) {
    case Layer:
      return true;
    case KdaLayer:
      return config.is_kda(layer);
    case MlaLayer:
      return config.is_mla(layer);
    case DenseLayer:
      return !config.is_moe(layer);
    case MoeLayer:
    case Expert:
      return config.is_moe(layer);
    case Model:
    case UntiedModel:
      return false;
  }
  return false;
}

void append_layer(const ModelConfig& config, const WeightPattern& pattern, size_t layer, std::vector<ExpectedTensor>& out) {
  if (!is_in(pattern.once_per, config, layer)) return;
  const Shape shape = shape_of(pattern, config);
  const std::string name = with_index(pattern.pattern, ".L.", layer);
  if (pattern.once_per != Expert) {
    out.push_back({name, shape, &pattern});
    return;
  }
  for (size_t expert = 0; expert < config.num_experts; ++expert)
    out.push_back({with_index(name, ".E.", expert), shape, &pattern});
}

}  // namespace

std::string_view to_string(ShardRule rule) {
  switch (rule) {
    case Replicated:
      return "replicated";
    case Vocabulary:
      return "vocabulary";
    case Columns:
      return "columns";
    case Rows:
      return "rows";
    case Heads:
      return "heads";
    case ExpertsThenColumns:
      return "experts, then columns";
    case ExpertsThenRows:
      return "experts, then rows";
  }
  return "?";
}

bool WeightPattern::allows(StorageFormat format) const {
  if (format.is_block()) return allows_blocks();
  return std::any_of(dtypes.begin(), dtypes.end(), [&](DType dtype) { return format == dtype; });
}

std::span<const WeightPattern> weight_patterns() { return kPatterns; }

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> all;
  for (const WeightPattern& pattern : kPatterns) {
    if (pattern.once_per == Model || (pattern.once_per == UntiedModel && !config.tie_word_embeddings))
      all.push_back({std::string(pattern.pattern), shape_of(pattern, config), &pattern});
    for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) append_layer(config, pattern, layer, all);
  }
  return all;
}

std::vector<ExpectedTensor> expected_tensors_of_layer(const ModelConfig& config, size_t layer) {
  if (layer >= config.num_hidden_layers)
    raise(ErrorCode::InvalidArgument, "layer {} is not in the model; expected 0..{}", layer, config.num_hidden_layers - 1);
  std::vector<ExpectedTensor> tensors;
  for (const WeightPattern& pattern : kPatterns) append_layer(config, pattern, layer, tensors);
  return tensors;
}

ExpectedTensor lm_head_of(const ModelConfig& config) {
  const auto* row = std::ranges::find(kPatterns, LmHead, &WeightPattern::use);
  return {std::string(row->pattern), shape_of(*row, config), row};
}

}  // namespace kilin

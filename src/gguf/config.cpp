#include "gguf/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_bounds.h"
#include "config/config_reader.h"
#include "kernels/kernel_table.h"

namespace kilin {

namespace {

constexpr std::string_view kArchitecture = "kimi-linear";
constexpr std::string_view kArchitectureKey = "general.architecture";
constexpr std::string_view kHeadCountKv = "kimi-linear.attention.head_count_kv";
constexpr std::string_view kGatingFunction = "kimi-linear.expert_gating_func";
constexpr uint64_t kSigmoid = 2;

// All keys that are looked at; the rest of a file's (its vocabulary among them) is no business of the configuration.
constexpr std::string_view kKeys[] = {
    kArchitectureKey,
    "kimi-linear.vocab_size",
    "kimi-linear.context_length",
    "kimi-linear.embedding_length",
    "kimi-linear.block_count",
    "kimi-linear.feed_forward_length",
    "kimi-linear.attention.head_count",
    kHeadCountKv,
    "kimi-linear.attention.layer_norm_rms_epsilon",
    "kimi-linear.attention.q_lora_rank",
    "kimi-linear.attention.kv_lora_rank",
    "kimi-linear.attention.key_length",
    "kimi-linear.attention.value_length",
    "kimi-linear.attention.key_length_mla",
    "kimi-linear.attention.value_length_mla",
    "kimi-linear.rope.dimension_count",
    "kimi-linear.rope.scaling.type",
    "kimi-linear.ssm.conv_kernel",
    "kimi-linear.kda.head_dim",
    "kimi-linear.expert_count",
    "kimi-linear.expert_used_count",
    "kimi-linear.expert_shared_count",
    "kimi-linear.expert_group_count",
    "kimi-linear.expert_group_used_count",
    "kimi-linear.expert_feed_forward_length",
    "kimi-linear.leading_dense_block_count",
    "kimi-linear.expert_weights_scale",
    "kimi-linear.expert_weights_norm",
    kGatingFunction,
    "kimi-linear.nextn_predict_layers",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.padding_token_id",
};

constexpr ExpertKeys kExpertKeys = {.layers = "kimi-linear.block_count",
                                    .experts = "kimi-linear.expert_count",
                                    .experts_per_token = "kimi-linear.expert_used_count",
                                    .groups = "kimi-linear.expert_group_count",
                                    .groups_per_token = "kimi-linear.expert_group_used_count"};

Json json_of(const GgufValue& value) {
  if (const auto* number = value.as<uint64_t>()) return *number;
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* truth = value.as<bool>()) return *truth;
  if (const auto* text = value.as<std::string_view>()) return printable(*text);  // any bytes; JSON holds UTF-8
  if (const auto* number = value.as<int64_t>())  // numbers from 0 on are unsigned, as the parser of JSON has them
    return *number < 0 ? Json(*number) : Json(static_cast<uint64_t>(*number));
  const auto& array = *value.as<GgufArray>();
  if (array.element() == GgufType::string || array.size() > kMaxLayers)
    return fmt::format("an array of {} values of type {}", array.size(), to_string(array.element()));
  Json list = Json::array();
  for (size_t i = 0; i < array.size(); ++i) list.push_back(json_of(array.at(i)));
  return list;
}

// "a.b.c" becomes an object inside an object, as ConfigReader reads them.
Json known_keys(const GgufMetadata& metadata) {
  Json root = Json::object();
  for (std::string_view key : kKeys) {
    const GgufValue* value = metadata.find(key);
    if (value == nullptr) continue;
    Json* object = &root;
    for (size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      object = &(*object)[std::string(key.substr(0, dot))];
      key.remove_prefix(dot + 1);
    }
    (*object)[std::string(key)] = json_of(*value);
  }
  return root;
}

void refuse_other_models(const ConfigReader& in, const GgufMetadata& metadata) {
  const std::string architecture = in.string({kArchitectureKey});
  if (architecture != kArchitecture)
    in.unsupported("key '{}' is '{}'; expected '{}': Kilin runs the Kimi-Linear family only", kArchitectureKey, architecture,
                   kArchitecture);
  for (const std::string_view key : {"kimi-linear.attention.q_lora_rank", "kimi-linear.nextn_predict_layers"})
    if (const auto size = in.optional_size({key}, 0, UINT64_MAX); size.value_or(0) != 0)
      in.unsupported("key '{}' is {}; expected 0: Kilin has neither q_a_proj and q_b_proj nor a multi-token head", key, *size);
  const auto scaling = in.optional_string({"kimi-linear.rope.scaling.type"});
  if (scaling.value_or("none") != "none")
    in.unsupported("key 'kimi-linear.rope.scaling.type' is '{}'; expected 'none': Kilin has no rotary embeddings", *scaling);
  // A file without the key is of a family that has no other function.
  const auto gating = in.optional_size({kGatingFunction}, 0, UINT64_MAX);
  if (gating.value_or(kSigmoid) != kSigmoid)
    in.unsupported("key '{}' is {}; expected {}, the sigmoid", kGatingFunction, *gating, kSigmoid);
  // Everything there shapes the recurrence, so that what is not known can't be passed over.
  constexpr std::string_view kKda = "kimi-linear.kda.";
  for (auto at = metadata.values().lower_bound(kKda); at != metadata.values().end() && at->first.starts_with(kKda); ++at)
    if (at->first != "kimi-linear.kda.head_dim")
      in.unsupported("there is a key '{}'; expected only 'kimi-linear.kda.head_dim': this is a later model than Kilin runs",
                     printable(at->first));
}

size_t read_vocab_size(const ConfigReader& in, const TensorStore& tensors) {
  constexpr std::string_view kKey = "kimi-linear.vocab_size";
  if (in.find(kKey) != nullptr) return in.size({kKey}, 1, kMaxVocabulary);
  const auto embedding = tensors.find("token_embd.weight");
  if (!embedding || embedding->shape.rank() != 2 || embedding->shape[0] > kMaxVocabulary)
    in.missing({kKey}, "it, or a tensor 'token_embd.weight' with a row for each token");
  return embedding->shape[0];
}

void read_mla(const ConfigReader& in, ModelConfig& c) {
  c.num_attention_heads = in.size({"kimi-linear.attention.head_count"}, 1, kMaxWidth);
  c.kv_lora_rank = in.size({"kimi-linear.attention.kv_lora_rank"}, 1, kMaxWidth);
  c.qk_rope_head_dim = in.size({"kimi-linear.rope.dimension_count"}, 1, kMaxWidth);
  // Where the _mla keys are missing, in older files, the plain ones are of a head; beside them they are of the latent.
  const auto of_a_head = [&](std::string_view mla, std::string_view plain) {
    return in.find(mla) != nullptr ? in.size({mla}, 1, kMaxWidth) : in.size({plain}, 1, kMaxWidth);
  };
  const size_t key_length = of_a_head("kimi-linear.attention.key_length_mla", "kimi-linear.attention.key_length");
  c.v_head_dim = of_a_head("kimi-linear.attention.value_length_mla", "kimi-linear.attention.value_length");
  if (key_length <= c.qk_rope_head_dim)
    in.corrupt(
        "the length of an MLA key (kimi-linear.attention.key_length_mla) is {}; expected more than "
        "kimi-linear.rope.dimension_count ({})",
        key_length, c.qk_rope_head_dim);
  c.qk_nope_head_dim = key_length - c.qk_rope_head_dim;
}

void read_kda(const ConfigReader& in, ModelConfig& c) {
  c.kda_num_heads = c.num_attention_heads;  // the format has no number of its own
  c.kda_head_dim = in.size({"kimi-linear.kda.head_dim"}, 1, kMaxWidth);
  c.short_conv_kernel_size = in.size({"kimi-linear.ssm.conv_kernel"}, 2, kMaxConvWidth);
}

void read_moe(const ConfigReader& in, ModelConfig& c) {
  c.num_experts = in.size({kExpertKeys.experts}, 1, kMaxExperts);
  c.num_experts_per_token = in.size({kExpertKeys.experts_per_token}, 1, c.num_experts);
  c.num_shared_experts = in.size({"kimi-linear.expert_shared_count"}, 1, kMaxWidth);
  c.moe_intermediate_size = in.size({"kimi-linear.expert_feed_forward_length"}, 1, kMaxWidth);
  // Converters often left it out, and the format's first reader renormalises in any case.
  c.moe_renormalize = in.optional_boolean({"kimi-linear.expert_weights_norm"}).value_or(true);
  c.routed_scaling_factor = in.real({"kimi-linear.expert_weights_scale"}, 1e-6, 1e6);
  c.num_expert_group = in.optional_size({kExpertKeys.groups}, 0, c.num_experts).value_or(1);
  c.num_expert_group = std::max<size_t>(c.num_expert_group, 1);  // 0 is how a converter writes that there are none
  c.topk_group = in.optional_size({kExpertKeys.groups_per_token}, 0, c.num_expert_group).value_or(1);
  c.topk_group = std::max<size_t>(c.topk_group, 1);
  check_experts(in, c, kExpertKeys);
}

// Older files give every layer as many heads: there the tensors tell.
std::vector<AttentionKind> attention_kinds_by_tensors(const ConfigReader& in, const TensorStore& tensors, size_t layers) {
  std::vector<AttentionKind> kinds;
  for (size_t layer = 0; layer < layers; ++layer) {
    const std::string kda = fmt::format("blk.{}.ssm_a", layer), mla = fmt::format("blk.{}.attn_kv_a_mqa.weight", layer);
    const bool has_kda = tensors.contains(kda), has_mla = tensors.contains(mla);
    if (has_kda == has_mla)
      in.corrupt(
          "there {} tensors '{}' and '{}', and key '{}' does not tell which attention layer {} has; expected one of them",
          has_kda ? "are both" : "are no", kda, mla, kHeadCountKv, layer);
    kinds.push_back(has_kda ? AttentionKind::Kda : AttentionKind::Mla);
  }
  return kinds;
}

// head_count_kv by layer, where 0 stands for a layer of KDA.
std::vector<AttentionKind> read_attention_kinds(const ConfigReader& in, const TensorStore& tensors, size_t layers) {
  const Json* value = in.find(kHeadCountKv);
  if (value == nullptr || !value->is_array()) {
    in.optional_size({kHeadCountKv}, 0, kMaxWidth);
    return attention_kinds_by_tensors(in, tensors, layers);
  }
  const auto heads = in.optional_sizes(kHeadCountKv, 0, kMaxWidth);
  if (heads->size() != layers)
    in.corrupt("key '{}' holds {} values; expected {}, one a layer (kimi-linear.block_count)", kHeadCountKv, heads->size(),
               layers);
  if (std::ranges::find(*heads, size_t{0}) == heads->end()) return attention_kinds_by_tensors(in, tensors, layers);
  std::vector<AttentionKind> kinds;
  for (const size_t count : *heads) kinds.push_back(count == 0 ? AttentionKind::Kda : AttentionKind::Mla);
  return kinds;
}

std::vector<FeedForwardKind> read_feed_forward_kinds(const ConfigReader& in, const TensorStore& tensors, size_t layers) {
  const auto dense = in.optional_size({"kimi-linear.leading_dense_block_count"}, 0, layers);
  std::vector<FeedForwardKind> kinds;
  for (size_t layer = 0; layer < layers; ++layer) {
    const bool moe = dense ? layer >= *dense : tensors.contains(fmt::format("blk.{}.ffn_gate_inp.weight", layer));
    kinds.push_back(moe ? FeedForwardKind::Moe : FeedForwardKind::Dense);
  }
  return kinds;
}

std::optional<int32_t> token_id(const ConfigReader& in, std::string_view key, size_t vocab_size) {
  const auto id = in.optional_size({key}, 0, vocab_size - 1);
  return id ? std::optional(static_cast<int32_t>(*id)) : std::nullopt;
}

}  // namespace

ModelConfig read_gguf_config(const GgufMetadata& metadata, const TensorStore& tensors) {
  const Json json = known_keys(metadata);
  const ConfigReader in(json, tensors.source());
  refuse_other_models(in, metadata);

  ModelConfig c;
  c.vocab_size = read_vocab_size(in, tensors);
  c.hidden_size = in.size({"kimi-linear.embedding_length"}, 1, kMaxHidden);
  c.num_hidden_layers = in.size({kExpertKeys.layers}, 1, kMaxLayers);
  c.intermediate_size = in.size({"kimi-linear.feed_forward_length"}, 1, kMaxWidth);
  c.rms_norm_eps = in.real({"kimi-linear.attention.layer_norm_rms_epsilon"}, 1e-12, 1);
  c.tie_word_embeddings = !tensors.contains("output.weight");
  c.model_max_length = in.size({"kimi-linear.context_length"}, 1, kMaxPositions);
  read_mla(in, c);
  read_kda(in, c);
  read_moe(in, c);
  check_widths(in, c);
  c.attention_kinds = read_attention_kinds(in, tensors, c.num_hidden_layers);
  c.feed_forward_kinds = read_feed_forward_kinds(in, tensors, c.num_hidden_layers);
  for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (const auto id = token_id(in, key, c.vocab_size)) c.eos_token_ids.push_back(*id);
  c.bos_token_id = token_id(in, "tokenizer.ggml.bos_token_id", c.vocab_size);
  c.pad_token_id = token_id(in, "tokenizer.ggml.padding_token_id", c.vocab_size);
  return c;
}

}  // namespace kilin

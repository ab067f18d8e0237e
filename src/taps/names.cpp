#include "taps/names.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <climits>
#include <numeric>
#include <optional>

#include "core/error.h"

namespace kilin {

namespace {

using Attention = BlockKind::Attention;
using FeedForward = BlockKind::FeedForward;

constexpr std::string_view kStream = "[S, hidden_size]";
constexpr std::string_view kKdaRow = "[S, num_heads * head_dim]";
constexpr std::string_view kKdaHeads = "[S, num_heads, head_dim]";
constexpr std::string_view kState = "[num_heads, head_dim, head_dim]";
constexpr std::string_view kLow = "[S, head_dim]";
constexpr std::string_view kChosen = "[S, num_experts_per_token]";
constexpr std::string_view kSharedRow = "[S, num_shared_experts * moe_intermediate_size]";

// In the order of Value: value, owner, name, held by, writable, staged, shape, MLA's shape. MLA computes keys and values from
// the latents only if somebody reads them; KDA has both anyway.
constexpr std::array<ValueInfo, kValues> kTable = {{
    {Value::InputIds, Owner::Model, "input_ids", HeldBy::Model, true, Staged::Never, "[S]", ""},
    {Value::TokenEmbeddings, Owner::Model, "token_embeddings", HeldBy::Model, true, Staged::Never, kStream, ""},
    {Value::LayerInput, Owner::Layer, "layer_input", HeldBy::EveryBlock, true, Staged::Never, kStream, ""},
    {Value::AttentionInput, Owner::Attention, "input", HeldBy::EveryBlock, true, Staged::Never, kStream, ""},
    {Value::QProj, Owner::Attention, "q_proj.output", HeldBy::EveryBlock, true, Staged::Never, kKdaRow,
     "[S, num_attention_heads * (qk_nope_head_dim + qk_rope_head_dim)]"},
    {Value::KProj, Owner::Attention, "k_proj.output", HeldBy::Kda, true, Staged::Never, kKdaRow, ""},
    {Value::VProj, Owner::Attention, "v_proj.output", HeldBy::Kda, true, Staged::Never, kKdaRow, ""},
    {Value::FAProj, Owner::Attention, "f_a_proj.output", HeldBy::Kda, true, Staged::Never, kLow, ""},
    {Value::BProj, Owner::Attention, "b_proj.output", HeldBy::Kda, true, Staged::Never, "[S, num_heads]", ""},
    {Value::GAProj, Owner::Attention, "g_a_proj.output", HeldBy::Kda, true, Staged::Never, kLow, ""},
    {Value::FBProj, Owner::Attention, "f_b_proj.output", HeldBy::Kda, true, Staged::Never, kKdaRow, ""},
    {Value::GBProj, Owner::Attention, "g_b_proj.output", HeldBy::Kda, true, Staged::Never, kKdaRow, ""},
    {Value::KvAProj, Owner::Attention, "kv_a_proj_with_mqa.output", HeldBy::Mla, true, Staged::Never,
     "[S, kv_lora_rank + qk_rope_head_dim]", ""},
    {Value::KvALayernorm, Owner::Attention, "kv_a_layernorm.output", HeldBy::Mla, true, Staged::Never, "[S, kv_lora_rank]", ""},
    {Value::AttentionQueries, Owner::Attention, "attention_queries", HeldBy::EveryBlock, true, Staged::Never, kKdaHeads,
     "[num_attention_heads, S, qk_nope_head_dim + qk_rope_head_dim]"},
    {Value::KvBProj, Owner::Attention, "kv_b_proj.output", HeldBy::Mla, true, Staged::Always,
     "[K, num_attention_heads * (qk_nope_head_dim + v_head_dim)]", ""},
    {Value::AttentionKeys, Owner::Attention, "attention_keys", HeldBy::EveryBlock, true, Staged::InMla, kKdaHeads,
     "[num_attention_heads, K, qk_nope_head_dim + qk_rope_head_dim]"},
    {Value::AttentionValues, Owner::Attention, "attention_values", HeldBy::EveryBlock, true, Staged::InMla, kKdaHeads,
     "[num_attention_heads, K, v_head_dim]"},
    {Value::Decays, Owner::Attention, "decays", HeldBy::Kda, true, Staged::Never, kKdaHeads, ""},
    {Value::Betas, Owner::Attention, "betas", HeldBy::Kda, true, Staged::Never, "[S, num_heads]", ""},
    {Value::AttentionScores, Owner::Attention, "attention_scores", HeldBy::Mla, true, Staged::Always,
     "[num_attention_heads, S, K]", ""},
    {Value::AttentionProbabilities, Owner::Attention, "attention_probabilities", HeldBy::Mla, true, Staged::Always,
     "[num_attention_heads, S, K]", ""},
    {Value::StateInput, Owner::Attention, "state_input", HeldBy::Kda, true, Staged::Never, kState, ""},
    {Value::States, Owner::Attention, "states", HeldBy::Kda, false, Staged::Always, "[S, num_heads, head_dim, head_dim]", ""},
    {Value::AttentionHeadOutputs, Owner::Attention, "attention_head_outputs", HeldBy::EveryBlock, true, Staged::Never,
     kKdaHeads, "[S, num_attention_heads, v_head_dim]"},
    {Value::StateOutput, Owner::Attention, "state_output", HeldBy::Kda, true, Staged::Never, kState, ""},
    {Value::ConvState, Owner::Attention, "conv_state", HeldBy::Kda, true, Staged::Never,
     "[short_conv_kernel_size - 1, 3 * num_heads * head_dim]", ""},
    {Value::ONorm, Owner::Attention, "o_norm.output", HeldBy::Kda, true, Staged::Never, kKdaRow, ""},
    {Value::AttentionOutput, Owner::Layer, "attention_output", HeldBy::EveryBlock, true, Staged::Never, kStream, ""},
    {Value::MlpInput, Owner::Mlp, "input", HeldBy::EveryBlock, true, Staged::Never, kStream, ""},
    {Value::GateProj, Owner::Mlp, "gate_proj.output", HeldBy::Dense, true, Staged::Never, "[S, intermediate_size]", ""},
    {Value::UpProj, Owner::Mlp, "up_proj.output", HeldBy::Dense, true, Staged::Never, "[S, intermediate_size]", ""},
    {Value::RouterLogits, Owner::Mlp, "router_logits", HeldBy::Moe, true, Staged::Never, "[S, num_experts]", ""},
    {Value::ExpertIndices, Owner::Mlp, "expert_indices", HeldBy::Moe, true, Staged::Never, kChosen, ""},
    {Value::ExpertWeights, Owner::Mlp, "expert_weights", HeldBy::Moe, true, Staged::Never, kChosen, ""},
    {Value::ExpertOutputs, Owner::Mlp, "expert_outputs", HeldBy::Moe, true, Staged::Always,
     "[S, num_experts_per_token, hidden_size]", ""},
    {Value::RoutedOutput, Owner::Mlp, "routed_output", HeldBy::Moe, true, Staged::Never, kStream, ""},
    {Value::SharedGateProj, Owner::Mlp, "shared_experts.gate_proj.output", HeldBy::Moe, true, Staged::Never, kSharedRow, ""},
    {Value::SharedUpProj, Owner::Mlp, "shared_experts.up_proj.output", HeldBy::Moe, true, Staged::Never, kSharedRow, ""},
    {Value::SharedExpertOutput, Owner::Mlp, "shared_expert_output", HeldBy::Moe, true, Staged::Never, kStream, ""},
    {Value::MlpOutput, Owner::Layer, "mlp_output", HeldBy::EveryBlock, true, Staged::Never, kStream, ""},
    {Value::LayerOutput, Owner::Layer, "layer_output", HeldBy::EveryBlock, true, Staged::Never, kStream, ""},
    {Value::Norm, Owner::Model, "norm", HeldBy::Model, true, Staged::Never, kStream, ""},
    {Value::Logits, Owner::Model, "logits", HeldBy::Model, true, Staged::Never, "[S, vocab_size]", ""},
    {Value::NextTokenProbs, Owner::Model, "next_token_probs", HeldBy::Model, false, Staged::Never, "[vocab_size]", ""},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kValues; ++i)
    if (kTable[i].value != static_cast<Value>(i)) return false;
  return true;
}
static_assert(in_order());

// Other names of the values above: inputs and outputs of modules.
struct Alias {
  Owner owner;
  std::string_view name;
  Value value;
  HeldBy held_by;  // the blocks that have the module, maybe fewer than have the value
};
constexpr Alias kAliases[] = {
    {Owner::Model, "embed_tokens.output", Value::TokenEmbeddings, HeldBy::Model},
    {Owner::Model, "norm.output", Value::Norm, HeldBy::Model},
    {Owner::Model, "lm_head.output", Value::Logits, HeldBy::Model},
    {Owner::Layer, "input", Value::LayerInput, HeldBy::EveryBlock},
    {Owner::Layer, "output", Value::LayerOutput, HeldBy::EveryBlock},
    {Owner::Layer, "input_layernorm.output", Value::AttentionInput, HeldBy::EveryBlock},
    {Owner::Layer, "post_attention_layernorm.output", Value::MlpInput, HeldBy::EveryBlock},
    {Owner::Attention, "o_proj.output", Value::AttentionOutput, HeldBy::EveryBlock},
    {Owner::Attention, "output", Value::AttentionOutput, HeldBy::EveryBlock},
    {Owner::Mlp, "gate.output", Value::RouterLogits, HeldBy::Moe},
    {Owner::Mlp, "router.output", Value::RouterLogits, HeldBy::Moe},
    {Owner::Mlp, "shared_experts.down_proj.output", Value::SharedExpertOutput, HeldBy::Moe},
    {Owner::Mlp, "shared_experts.output", Value::SharedExpertOutput, HeldBy::Moe},
    {Owner::Mlp, "down_proj.output", Value::MlpOutput, HeldBy::Dense},
    {Owner::Mlp, "output", Value::MlpOutput, HeldBy::EveryBlock},
};

// What a name means, and which blocks have a value of that name.
struct Meaning {
  Value value;
  HeldBy held_by;
};

std::optional<Meaning> find_meaning(Owner owner, std::string_view name) {
  for (const ValueInfo& info : kTable)
    if (info.owner == owner && info.name == name) return Meaning{info.value, info.held_by};
  for (const Alias& alias : kAliases)
    if (alias.owner == owner && alias.name == name) return Meaning{alias.value, alias.held_by};
  return std::nullopt;
}

std::string_view attention_name(BlockKind kind) { return kind.attention == Attention::Kda ? "linear_attn" : "self_attn"; }

bool holds(BlockKind kind, HeldBy held_by) {
  switch (held_by) {
    case HeldBy::Model:
      return false;
    case HeldBy::EveryBlock:
      return true;
    case HeldBy::Kda:
      return kind.attention == Attention::Kda;
    case HeldBy::Mla:
      return kind.attention == Attention::Mla;
    case HeldBy::Dense:
      return kind.feed_forward == FeedForward::Dense;
    case HeldBy::Moe:
      return kind.feed_forward == FeedForward::Moe;
  }
  return false;
}

// "a KDA block" if its attention lacks the value; "a dense block" if its feed-forward does.
std::string_view describe(BlockKind kind, Owner owner) {
  if (owner == Owner::Mlp) return kind.feed_forward == FeedForward::Dense ? "a dense block" : "a mixture-of-experts block";
  return kind.attention == Attention::Kda ? "a KDA block" : "an MLA block";
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

// A name split into its parts. After the layer comes "linear_attn.decays": a module, if any, and a value.
class Name {
 public:
  explicit Name(std::string_view text) : text_(text), rest_(text) {
    constexpr std::string_view kModel = "model.";
    checkpoint_path_ = rest_.starts_with(kModel);
    if (checkpoint_path_) rest_.remove_prefix(kModel.size());
    if (read_layer("layers[", "].") || read_layer("layers.", ".")) owner_ = Owner::Layer;
    if (!layer_) return;
    for (const auto& [module, owner] : kModules)
      if (rest_.starts_with(module) && rest_.substr(module.size()).starts_with(".")) {
        owner_ = owner;
        module_ = module;
        rest_.remove_prefix(module.size() + 1);
        return;
      }
  }

  bool has_layer() const { return layer_.has_value(); }
  size_t layer() const { return *layer_; }
  Owner owner() const { return owner_; }
  std::string_view module() const { return module_; }
  std::string_view value() const { return rest_; }
  bool is_checkpoint_path() const { return checkpoint_path_; }
  std::string text() const { return printable(text_); }

  // As error messages have it.
  std::string shown() const {
    if (!layer_) return text();
    return fmt::format("layers[{}].{}{}{}", *layer_, module_, module_.empty() ? "" : ".", printable(rest_));
  }

 private:
  static constexpr std::pair<std::string_view, Owner> kModules[] = {{"self_attn", Owner::Attention},
                                                                    {"linear_attn", Owner::Attention},
                                                                    {"mlp", Owner::Mlp},
                                                                    {"block_sparse_moe", Owner::Mlp}};

  bool read_layer(std::string_view before, std::string_view after) {
    if (!rest_.starts_with(before)) return false;
    const char* first = rest_.data() + before.size();
    size_t number = 0;
    const auto [end, error] = std::from_chars(first, rest_.data() + rest_.size(), number);
    const std::string_view behind = rest_.substr(static_cast<size_t>(end - rest_.data()));
    if (error != std::errc() || !behind.starts_with(after)) return false;
    layer_ = number;
    rest_ = behind.substr(after.size());
    return true;
  }

  std::string_view text_, rest_, module_;
  std::optional<size_t> layer_;
  Owner owner_ = Owner::Model;
  bool checkpoint_path_ = false;
};

[[noreturn]] void raise_unknown(const Name& name, std::span<const BlockKind> blocks) {
  const size_t block = name.has_layer() ? name.layer() : 0;
  std::vector<std::pair<size_t, std::string>> near;
  for (const OfferedValue& offered : support(blocks))
    if (offered.site.layer == Site::kModel || static_cast<size_t>(offered.site.layer) == block)
      near.emplace_back(edit_distance(name.text(), offered.name), offered.name);
  const size_t shown = std::min<size_t>(3, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(shown), near.end());
  std::string names;
  for (size_t i = 0; i < shown; ++i) names += (i == 0 ? "" : ", ") + near[i].second;
  raise(ErrorCode::NotFound, "'{}' names no value; near it are {}", name.text(), names);
}

[[noreturn]] void raise_unavailable(const Name& name, std::string_view is, const std::string& instead) {
  raise(ErrorCode::Unavailable, "{} is not available: block {} is {}{}", name.shown(), name.layer(), is, instead);
}

// The value's name in this block, as a hint to those who asked for it under the other kind's module.
std::string pointer_to(Value value, const Name& name, BlockKind kind, std::span<const BlockKind> blocks) {
  if (!holds(kind, value_info(value).held_by)) return "";
  return "; it is " + name_of({value, static_cast<int>(name.layer())}, blocks);
}

}  // namespace

bool passes_before(const Site& a, const Site& b) {
  const auto block = [](const Site& s) { return s.layer != Site::kModel ? s.layer : s.value >= Value::Norm ? INT_MAX : -1; };
  return block(a) != block(b) ? block(a) < block(b) : a.value < b.value;
}

const ValueInfo& value_info(Value value) { return kTable[static_cast<size_t>(value)]; }

bool is_staged(Value value, BlockKind block) {
  const ValueInfo& info = value_info(value);
  if (!holds(block, info.held_by)) return false;
  return info.staged == Staged::Always || (info.staged == Staged::InMla && block.attention == Attention::Mla);
}

std::string name_of(const Site& site, std::span<const BlockKind> blocks) {
  const ValueInfo& info = value_info(site.value);
  if (info.owner == Owner::Model) return std::string(info.name);
  const auto layer = static_cast<size_t>(site.layer);
  assert(layer < blocks.size());
  std::string text = "layers." + std::to_string(layer) + ".";
  if (info.owner == Owner::Attention) text.append(attention_name(blocks[layer])).append(".");
  if (info.owner == Owner::Mlp) text += "mlp.";
  return text.append(info.name);
}

Site find_site(std::string_view text, std::span<const BlockKind> blocks) {
  const Name name(text);
  if (name.has_layer() && name.layer() >= blocks.size())
    raise(ErrorCode::NotFound, "{}: there is no such layer; expected 0 to {}", name.shown(), blocks.size() - 1);
  const std::optional<Meaning> meaning = find_meaning(name.owner(), name.value());
  if (!meaning) raise_unknown(name, blocks);
  if (!name.has_layer()) return {meaning->value};
  const BlockKind kind = blocks[name.layer()];

  if (name.owner() == Owner::Attention && name.module() != attention_name(kind)) {
    const bool is_its_path = name.is_checkpoint_path() && name.module() == "self_attn";  // KDA's too, in the checkpoint
    if (!is_its_path) raise_unavailable(name, describe(kind, Owner::Attention), pointer_to(meaning->value, name, kind, blocks));
  }
  if (name.module() == "block_sparse_moe" && kind.feed_forward != FeedForward::Moe)
    raise_unavailable(name, describe(kind, Owner::Mlp), pointer_to(meaning->value, name, kind, blocks));
  if (!holds(kind, meaning->held_by)) raise_unavailable(name, describe(kind, name.owner()), "");
  return {meaning->value, static_cast<int>(name.layer())};
}

std::vector<OfferedValue> support(std::span<const BlockKind> blocks) {
  std::vector<OfferedValue> offered;
  const auto add = [&](const ValueInfo& info, int layer) {
    const Site site = {info.value, layer};
    const bool of_mla = layer != Site::kModel && blocks[static_cast<size_t>(layer)].attention == Attention::Mla;
    const bool staged = layer != Site::kModel && is_staged(info.value, blocks[static_cast<size_t>(layer)]);
    offered.push_back(
        {name_of(site, blocks), site, of_mla && !info.mla_shape.empty() ? info.mla_shape : info.shape, info.writable, staged});
  };
  const auto add_of_model = [&](bool after_layers) {
    for (const ValueInfo& info : kTable)
      if (info.held_by == HeldBy::Model && (info.value >= Value::Norm) == after_layers) add(info, Site::kModel);
  };
  add_of_model(false);
  for (size_t layer = 0; layer < blocks.size(); ++layer)
    for (const ValueInfo& info : kTable)
      if (holds(blocks[layer], info.held_by)) add(info, static_cast<int>(layer));
  add_of_model(true);
  return offered;
}

}  // namespace kilin

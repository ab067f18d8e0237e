#include "synthetic/synthetic_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/model_config.h"
#include "core/error.h"
#include "core/json.h"

namespace kilin {

namespace {

// The first n kinds. If the cut would lose a kind, the last one is of that kind.
template <typename Kind>
std::vector<Kind> cut_kinds(const std::vector<Kind>& kinds, size_t n) {
  std::vector<Kind> cut(kinds.begin(), kinds.begin() + static_cast<ptrdiff_t>(n));
  const auto other = std::ranges::find_if(kinds, [&](Kind kind) { return kind != cut.front(); });
  const bool uniform = std::ranges::all_of(cut, [&](Kind kind) { return kind == cut.front(); });
  if (n > 1 && uniform && other != kinds.end()) cut.back() = *other;
  return cut;
}

// Cuts layer_types or mlp_layer_types. A layer whose kind has changed takes the word of the first layer of that kind.
template <typename Kind>
void cut_words(Json& config, const char* key, const std::vector<Kind>& before, const std::vector<Kind>& after) {
  if (!config.contains(key) || config[key].is_null()) return;
  Json words = Json::array();
  for (size_t layer = 0; layer < after.size(); ++layer) {
    const auto same = before[layer] == after[layer] ? before.begin() + static_cast<ptrdiff_t>(layer)
                                                    : std::ranges::find(before, after[layer]);
    words.push_back(config[key][static_cast<size_t>(same - before.begin())]);
  }
  config[key] = std::move(words);
}

void cut_attention(Json& config, const ModelConfig& c, size_t layers) {
  const std::vector<AttentionKind> kinds = cut_kinds(c.attention_kinds, layers);
  cut_words(config, "layer_types", c.attention_kinds, kinds);
  if (!config.contains("linear_attn_config") || !config["linear_attn_config"].contains("kda_layers")) return;
  Json kda = Json::array(), mla = Json::array();
  for (size_t layer = 0; layer < layers; ++layer) (kinds[layer] == AttentionKind::Kda ? kda : mla).push_back(layer + 1);
  config["linear_attn_config"]["kda_layers"] = std::move(kda);
  config["linear_attn_config"]["full_attn_layers"] = std::move(mla);
}

void cut_feed_forward(Json& config, const ModelConfig& c, size_t layers) {
  constexpr const char *kWords = "mlp_layer_types", *kFirst = "first_k_dense_replace", *kEvery = "moe_layer_freq";
  std::vector<FeedForwardKind> kinds = cut_kinds(c.feed_forward_kinds, layers);
  // A single layer gets experts, if the model has any; first_k_dense_replace, below, says the same.
  if (layers == 1 && std::ranges::count(c.feed_forward_kinds, FeedForwardKind::Moe) > 0) kinds[0] = FeedForwardKind::Moe;
  if (config.contains(kFirst) && !config[kFirst].is_null()) {
    const size_t first = std::min(config[kFirst].get<size_t>(), layers - 1);
    const size_t every = config.contains(kEvery) && !config[kEvery].is_null() ? config[kEvery].get<size_t>() : 1;
    config[kFirst] = first;
    for (size_t layer = 0; layer < layers; ++layer)
      kinds[layer] = layer >= first && layer % every == 0 ? FeedForwardKind::Moe : FeedForwardKind::Dense;
  }
  cut_words(config, kWords, c.feed_forward_kinds, kinds);
}

void set_where_present(Json& config, std::initializer_list<const char*> keys, size_t value) {
  for (const char* key : keys)
    if (config.contains(key) && !config[key].is_null()) config[key] = value;
}

}  // namespace

std::string synthetic_config(std::string_view text, const std::string& source, const SyntheticShape& shape) {
  const ModelConfig c = ModelConfig::parse(text, source);
  Json config = parse_json(text, source);
  const size_t layers = shape.layers.value_or(c.num_hidden_layers), experts = shape.experts.value_or(c.num_experts);
  if (layers < 1 || layers > c.num_hidden_layers)
    raise(ErrorCode::InvalidArgument, "layers is {}; expected 1 to {}, the num_hidden_layers of {}", layers,
          c.num_hidden_layers, source);
  if (shape.experts && (experts < 1 || experts > c.num_experts))
    raise(ErrorCode::InvalidArgument, "experts is {}; expected 1 to {}, the num_experts of {}", experts, c.num_experts, source);
  if (shape.dtype != DType::bf16 && shape.dtype != DType::f32)
    raise(ErrorCode::InvalidArgument, "dtype is {}; expected bf16 or f32", to_string(shape.dtype));

  if (shape.layers) {
    config["num_hidden_layers"] = layers;
    cut_attention(config, c, layers);
    cut_feed_forward(config, c, layers);
  }
  if (shape.experts) {
    set_where_present(config, {"num_experts", "num_local_experts", "n_routed_experts"}, experts);
    set_where_present(config, {"num_experts_per_token", "num_experts_per_tok"}, std::min(c.num_experts_per_token, experts));
  }
  const char* dtype = shape.dtype == DType::bf16 ? "bfloat16" : "float32";
  if (config.contains("torch_dtype")) config["torch_dtype"] = dtype;
  if (config.contains("dtype") || !config.contains("torch_dtype")) config["dtype"] = dtype;
  config.erase("auto_map");  // names Python files that are not copied

  std::string result = config.dump(2) + "\n";
  ModelConfig::parse(result,
                     source + ", cut to " + std::to_string(layers) + " layers of " + std::to_string(experts) + " experts");
  return result;
}

}  // namespace kilin

#include "config/layer_kinds.h"

#include <optional>
#include <string>

namespace kilin {

namespace {

constexpr std::string_view kKdaLayers = "linear_attn_config.kda_layers";
constexpr std::string_view kMlaLayers = "linear_attn_config.full_attn_layers";

std::string_view name_of(AttentionKind kind) { return kind == AttentionKind::Kda ? "KDA" : "full attention"; }
std::string_view name_of(FeedForwardKind kind) { return kind == FeedForwardKind::Dense ? "dense" : "sparse"; }

// The lists must hold each of 1..layers once, together.
std::optional<std::vector<AttentionKind>> kinds_from_lists(const ConfigReader& in, size_t layers) {
  const auto kda = in.optional_sizes(kKdaLayers, 1, layers), mla = in.optional_sizes(kMlaLayers, 1, layers);
  if (!kda && !mla) return std::nullopt;
  const std::string expected = fmt::format("each of 1..{} in exactly one of kda_layers and full_attn_layers", layers);
  if (!kda) in.missing({kKdaLayers}, expected);
  if (!mla) in.missing({kMlaLayers}, expected);

  std::vector<std::optional<AttentionKind>> kinds(layers);
  const auto enter = [&](const std::vector<size_t>& list, AttentionKind kind, std::string_view key) {
    for (const size_t layer : list) {
      auto& slot = kinds[layer - 1];
      if (slot == kind) in.corrupt("{} holds layer {} twice; expected {}", key, layer, expected);
      if (slot) in.corrupt("{} and full_attn_layers both hold layer {}; expected {}", kKdaLayers, layer, expected);
      slot = kind;
    }
  };
  enter(*kda, AttentionKind::Kda, kKdaLayers);
  enter(*mla, AttentionKind::Mla, kMlaLayers);
  std::vector<AttentionKind> result;
  for (size_t i = 0; i < layers; ++i) {
    if (!kinds[i]) in.corrupt("{} and full_attn_layers hold no layer {}; expected {}", kKdaLayers, i + 1, expected);
    result.push_back(*kinds[i]);
  }
  return result;
}

// Reads one word per layer from a key that transformers writes. `kind_of` gives nothing for an unknown word.
template <typename Kind, typename KindOf>
std::optional<std::vector<Kind>> kinds_from_words(const ConfigReader& in, std::string_view key, size_t layers, KindOf kind_of,
                                                  std::string_view known) {
  const auto words = in.optional_strings(key);
  if (!words) return std::nullopt;
  if (words->size() != layers)
    in.corrupt("key '{}' holds {} entries; expected {}, one a layer (num_hidden_layers)", key, words->size(), layers);
  std::vector<Kind> kinds;
  for (size_t layer = 0; layer < layers; ++layer) {
    const std::optional<Kind> kind = kind_of((*words)[layer]);
    if (!kind) in.unsupported("key '{}' holds '{}' for layer {}; expected {}", key, printable((*words)[layer]), layer, known);
    kinds.push_back(*kind);
  }
  return kinds;
}

template <typename Kind>
std::vector<Kind> agreed(const ConfigReader& in, const std::optional<std::vector<Kind>>& a, std::string_view a_key,
                         const std::optional<std::vector<Kind>>& b, std::string_view b_key) {
  if (!a) return *b;
  if (b)
    for (size_t layer = 0; layer < a->size(); ++layer)
      if ((*a)[layer] != (*b)[layer])
        in.corrupt("keys '{}' ({}) and '{}' ({}) contradict each other in layer {} (from 0); expected the same kind", a_key,
                   name_of((*a)[layer]), b_key, name_of((*b)[layer]), layer);
  return *a;
}

}  // namespace

std::vector<AttentionKind> read_attention_kinds(const ConfigReader& in, size_t layers) {
  const auto lists = kinds_from_lists(in, layers);
  const auto words = kinds_from_words<AttentionKind>(
      in, "layer_types", layers,
      [](std::string_view word) -> std::optional<AttentionKind> {
        if (word == "linear_attention" || word == "kda_attention") return AttentionKind::Kda;
        if (word == "full_attention") return AttentionKind::Mla;
        return std::nullopt;
      },
      "linear_attention, kda_attention or full_attention");
  if (!lists && !words)
    in.missing({kKdaLayers, "layer_types"},
               fmt::format("each of 1..{} in exactly one of kda_layers and full_attn_layers", layers));
  return agreed(in, lists, "linear_attn_config", words, "layer_types");
}

std::vector<FeedForwardKind> read_feed_forward_kinds(const ConfigReader& in, size_t layers) {
  constexpr std::string_view kWords = "mlp_layer_types", kFirst = "first_k_dense_replace", kEvery = "moe_layer_freq";
  const auto words = kinds_from_words<FeedForwardKind>(
      in, kWords, layers,
      [](std::string_view word) -> std::optional<FeedForwardKind> {
        if (word == "dense") return FeedForwardKind::Dense;
        if (word == "sparse") return FeedForwardKind::Moe;
        return std::nullopt;
      },
      "dense or sparse");
  std::optional<std::vector<FeedForwardKind>> numbers;
  const auto first = in.optional_size({kFirst}, 0, layers);
  const auto every = in.optional_size({kEvery}, 1, layers);
  if (first || !words) {
    if (!first)
      in.missing({kFirst, kWords}, fmt::format("the number of dense layers before the first with experts, 0..{}", layers));
    // transformers' own class has no moe_layer_freq, so it may be absent if mlp_layer_types is there.
    if (!every && !words) in.missing({kEvery}, "1, or n for experts in every n-th layer");
    numbers.emplace();
    for (size_t layer = 0; layer < layers; ++layer)
      numbers->push_back(layer >= *first && layer % every.value_or(1) == 0 ? FeedForwardKind::Moe : FeedForwardKind::Dense);
  }
  return agreed(in, numbers, kFirst, words, kWords);
}

}  // namespace kilin

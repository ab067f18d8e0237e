#include "weights/quant_mix.h"

#include <charconv>

#include "core/error.h"
#include "weights/weight_map.h"

namespace kilin {

namespace {

struct TypeFacts {
  QuantType type;
  std::string_view name;
  BlockFormat products;
  BlockFormat sensitive;  // in the layers that matter most
  BlockFormat lm_head;
};

constexpr TypeFacts kTypes[] = {
    {QuantType::q8_0, "q8_0", BlockFormat::q8_0, BlockFormat::q8_0, BlockFormat::q8_0},
    {QuantType::q6_k, "q6_k", BlockFormat::q6_k, BlockFormat::q6_k, BlockFormat::q6_k},
    {QuantType::q5_k_m, "q5_k_m", BlockFormat::q5_k, BlockFormat::q6_k, BlockFormat::q6_k},
    {QuantType::q4_k_m, "q4_k_m", BlockFormat::q4_k, BlockFormat::q6_k, BlockFormat::q6_k},
    {QuantType::q4_0, "q4_0", BlockFormat::q4_0, BlockFormat::q4_0, BlockFormat::q6_k},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (static_cast<size_t>(kTypes[i].type) != i) return false;
  return true;
}
static_assert(in_order(), "a type's facts stand at its number");

const TypeFacts& facts_of(QuantType type) { return kTypes[static_cast<size_t>(type)]; }

// N of "model.layers.N.".
size_t layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  size_t layer = 0;
  if (name.starts_with(kLayers)) std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  return layer;
}

bool matters_most(size_t layer, size_t layers) {
  const size_t eighth = layers / 8;
  return layer < eighth || layer >= layers - eighth || (layer - eighth) % 3 == 2;
}

std::optional<BlockFormat> that_fits(BlockFormat format, size_t cols) {
  if (cols % block_size(format).elements == 0) return format;
  if (cols % block_size(BlockFormat::q8_0).elements == 0) return BlockFormat::q8_0;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(QuantType type) { return facts_of(type).name; }

std::vector<std::string> quant_type_names() {
  std::vector<std::string> names;
  for (const TypeFacts& facts : kTypes) names.emplace_back(facts.name);
  return names;
}

std::string known_quant_types() {
  std::string names;
  for (const TypeFacts& facts : kTypes) {
    if (!names.empty()) names += &facts == std::end(kTypes) - 1 ? " or " : ", ";
    names += facts.name;
  }
  return names;
}

QuantType parse_quant_type(std::string_view name) {
  for (const TypeFacts& facts : kTypes)
    if (name == facts.name) return facts.type;
  raise(ErrorCode::InvalidArgument, "'{}' is no type to quantise to; expected {}", printable(name), known_quant_types());
}

std::optional<BlockFormat> QuantMix::format_of(const ExpectedTensor& tensor) const {
  const TypeFacts& facts = facts_of(type_);
  const WeightUse use = tensor.pattern->use;
  if (!is_product(use) || use == WeightUse::ExactProduct) return std::nullopt;
  const size_t cols = tensor.shape[tensor.shape.rank() - 1];
  if (use == WeightUse::LmHead) return that_fits(facts.lm_head, cols);
  const bool finer = use == WeightUse::SensitiveProduct && matters_most(layer_of(tensor.name), layers_);
  return that_fits(finer ? facts.sensitive : facts.products, cols);
}

std::optional<BlockFormat> QuantMix::format_of_table(size_t cols) const { return that_fits(facts_of(type_).products, cols); }

}  // namespace kilin

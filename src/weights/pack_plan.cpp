#include "weights/pack_plan.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "kernels/quant/panels.h"
#include "weights/weight_map.h"

namespace kilin {

namespace {

std::optional<QuantMix> mix_of(const ModelConfig& config, std::optional<QuantType> quantize) {
  if (!quantize) return std::nullopt;
  return QuantMix(*quantize, config.num_hidden_layers);
}

// What the panels of a product's tensor hold; nothing if it is used as it stands.
std::optional<BlockFormat> packed_format(const StoredTensor& stored, const ExpectedTensor& tensor,
                                         const std::optional<QuantMix>& mix) {
  if (!stored.format.is_block()) return mix ? mix->format_of(tensor) : std::nullopt;
  if (mix)
    raise(ErrorCode::InvalidArgument, "{}: tensor '{}' is {} already; expected f32, f16 or bf16 to quantise to {}", stored.file,
          printable(stored.name), to_string(stored.format), to_string(mix->type()));
  return stored.format.block();
}

}  // namespace

PackPlan PackPlan::of(const TensorStore& store, const ModelConfig& config, std::optional<QuantType> quantize) {
  const auto mix = mix_of(config, quantize);
  PackPlan plan;
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer)
    for (const ExpectedTensor& tensor : expected_tensors_of_layer(config, layer)) plan.add(store, tensor, tensor.name, mix);
  const ExpectedTensor lm_head = lm_head_of(config);
  plan.add(store, lm_head, config.tie_word_embeddings ? "model.embed_tokens.weight" : lm_head.name, mix);
  return plan;
}

PackPlan PackPlan::of_layer(const TensorStore& store, const ModelConfig& config, size_t layer,
                            std::optional<QuantType> quantize) {
  const auto mix = mix_of(config, quantize);
  PackPlan plan;
  for (const ExpectedTensor& tensor : expected_tensors_of_layer(config, layer)) plan.add(store, tensor, tensor.name, mix);
  return plan;
}

void PackPlan::add(const TensorStore& store, const ExpectedTensor& tensor, const std::string& source,
                   const std::optional<QuantMix>& mix) {
  if (!is_product(tensor.pattern->use)) return;
  const StoredTensor stored = store.require(source);
  const auto format = packed_format(stored, tensor, mix);
  if (!format) return;
  const size_t rows = tensor.shape[0], cols = tensor.shape[1];
  place_of_.emplace(tensor.name, packs_.size());
  packs_.push_back({tensor.name, source, *format, rows, cols, bytes_, panel_bytes(*format, rows, cols)});
  bytes_ += packs_.back().bytes;
}

const PlannedPack* PackPlan::find(std::string_view name) const {
  const auto at = place_of_.find(name);
  return at == place_of_.end() ? nullptr : &packs_[at->second];
}

}  // namespace kilin

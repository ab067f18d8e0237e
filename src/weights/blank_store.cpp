#include "weights/blank_store.h"

#include <algorithm>

#include "weights/weight_map.h"

namespace kilin {

namespace {

StorageFormat format_of(const ExpectedTensor& tensor, std::optional<BlockFormat> blocks) {
  const bool fits = blocks && tensor.pattern->allows_blocks() && tensor.shape[1] % block_size(*blocks).elements == 0;
  return fits ? StorageFormat(*blocks) : StorageFormat(tensor.published_dtype());
}

}  // namespace

BlankStore::BlankStore(const ModelConfig& config, std::optional<BlockFormat> blocks) {
  size_t most = 0;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    const StorageFormat format = format_of(tensor, blocks);
    most = std::max(most, format.bytes_of(tensor.shape.elements()));
    tensors_.emplace(tensor.name, std::pair(format, tensor.shape));
  }
  zeros_ = Reservation(most, "blank weights");
  for (const auto& [name, tensor] : tensors_) names_.push_back(name);
}

std::optional<StoredTensor> BlankStore::find(std::string_view name) const {
  const auto at = tensors_.find(name);
  if (at == tensors_.end()) return std::nullopt;
  const auto& [format, shape] = at->second;
  return StoredTensor{at->first, format, shape, {zeros_.data(), format.bytes_of(shape.elements())}, source_};
}

}  // namespace kilin

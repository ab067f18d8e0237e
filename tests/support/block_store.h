// models/tiny with its matrices in blocks.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "kernels/quant/blocks.h"
#include "kernels/quant/quantize.h"
#include "support/golden.h"
#include "weights/weight_map.h"

namespace kilin::testing {

// models/tiny in memory, all matrices in q8_0, as a GGUF file would hold them.
class BlockStore final : public TensorStore {
 public:
  explicit BlockStore(const ModelConfig& config) : original_(Checkpoint::open(in_repository("models/tiny"))) {
    for (const ExpectedTensor& tensor : expected_tensors(config)) {
      names_.push_back(tensor.name);
      if (tensor.pattern->use != WeightUse::Parameter) blocks_[tensor.name] = as_blocks(original_->require(tensor.name));
    }
    std::ranges::sort(names_);
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return source_; }
  std::optional<StoredTensor> find(std::string_view name) const override {
    auto tensor = original_->find(name);
    const auto at = blocks_.find(name);
    if (at == blocks_.end()) return tensor;
    tensor->format = BlockFormat::q8_0;
    tensor->bytes = at->second;
    return tensor;
  }
  void release(std::span<const std::byte> bytes) const override { released_ += bytes.size(); }
  size_t released() const { return released_; }

  std::vector<float> values(const std::string& name) const {
    const StoredTensor tensor = require(name);
    std::vector<float> values(tensor.elements());
    dequantize_row(BlockFormat::q8_0, tensor.bytes.data(), values.size(), values.data());
    return values;
  }

 private:
  static std::vector<std::byte> as_blocks(const StoredTensor& tensor) {
    std::vector<float> values(tensor.elements());
    const auto* halves = reinterpret_cast<const bf16*>(tensor.bytes.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = to_float(halves[i]);
    std::vector<std::byte> blocks(StorageFormat(BlockFormat::q8_0).bytes_of(values.size()));
    quantize_row(BlockFormat::q8_0, Rounding::Nearest, values.data(), values.size(), blocks.data());
    return blocks;
  }

  std::shared_ptr<const Checkpoint> original_;
  std::vector<std::string> names_;
  std::string source_ = "blocks";
  std::map<std::string, std::vector<std::byte>, std::less<>> blocks_;
  mutable size_t released_ = 0;
};

}  // namespace kilin::testing

// Which matrices of a model are packed into panels, and where each one goes: known before the first is packed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/storage_format.h"
#include "weights/quant_mix.h"

namespace kilin {

struct PlannedPack {
  std::string name;    ///< the matrix, as the weight map names it
  std::string source;  ///< the tensor that it is made from: the embedding where lm_head is tied to it
  BlockFormat format;  ///< of the panels: the tensor's own, or what it is quantised to
  size_t rows, cols;   ///< [out_features, in_features]
  uint64_t offset;     ///< a multiple of 64
  uint64_t bytes;
};

/// The packs of a model, back to back in the order of layers, as a token reads them.
class PackPlan {
 public:
  /// A tensor that products read is packed where it stands in blocks, or where the mix of `quantize` wants it in blocks.
  /// @pre check_tensors(store, config) has passed
  /// @throws InvalidArgument if `quantize` is asked of a tensor that stands in blocks already; and what store.require throws
  static PackPlan of(const TensorStore& store, const ModelConfig& config, std::optional<QuantType> quantize);

  /// The same for the tensors of one layer (from 0).
  static PackPlan of_layer(const TensorStore& store, const ModelConfig& config, size_t layer,
                           std::optional<QuantType> quantize);

  const std::vector<PlannedPack>& packs() const { return packs_; }
  uint64_t bytes() const { return bytes_; }
  bool empty() const { return packs_.empty(); }

  /// Null for a matrix that is not packed.
  const PlannedPack* find(std::string_view name) const;

 private:
  void add(const TensorStore& store, const ExpectedTensor& tensor, const std::string& source,
           const std::optional<QuantMix>& mix);

  std::vector<PlannedPack> packs_;
  std::map<std::string, size_t, std::less<>> place_of_;  // in packs_
  uint64_t bytes_ = 0;
};

}  // namespace kilin

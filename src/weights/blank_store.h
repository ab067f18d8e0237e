// A checkpoint of zeros, for building a model's modules where its weights are not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/tensor_store.h"
#include "config/model_config.h"
#include "core/reservation.h"

namespace kilin {

/// All tensors of a model, every one the same zeros. They are address space, and take memory only where something reads them.
class BlankStore final : public TensorStore {
 public:
  /// @param blocks what matrices are stored as whose rows are whole blocks; unset: all tensors as the published checkpoint has
  /// them
  /// @throws ResourceExhausted for a tensor too large to even be addressed
  explicit BlankStore(const ModelConfig& config, std::optional<BlockFormat> blocks = std::nullopt);

  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return source_; }
  std::optional<StoredTensor> find(std::string_view name) const override;

 private:
  std::map<std::string, std::pair<StorageFormat, Shape>, std::less<>> tensors_;
  std::vector<std::string> names_;
  std::string source_ = "blank weights";
  Reservation zeros_;
};

}  // namespace kilin

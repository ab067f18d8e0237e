// Compares the tensors that a model must have with those that its folder holds, for showing a model, complete or not. Loading
// is stricter (check_tensors).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weights/weight_map.h"

namespace kilin {

enum class Presence : uint8_t {
  Stored,      ///< in a file that is here
  Expected,    ///< told from config.json alone: the folder holds no weights at all
  Missing,     ///< no file promises it
  Unreadable,  ///< promised by the index, and its file is not here or broken
};

std::string_view to_string(Presence presence);  ///< "stored", "expected", "missing", "unreadable"

struct InventoryTensor {
  std::string name;
  const WeightPattern* pattern;
  Presence presence;
  StorageFormat format;  ///< as stored; of the published checkpoint where it is not
  Shape shape;           ///< likewise
  std::string file;      ///< the path; empty unless stored
  std::string fault;     ///< what is wrong with its shape or dtype; empty if nothing

  uint64_t parameters() const { return shape.elements(); }
  uint64_t bytes() const { return format.bytes_of(parameters()); }
};

struct TensorInventory {
  std::vector<InventoryTensor> tensors;       ///< in the order of the weight map
  std::vector<std::string> surplus;           ///< names that are there and have no place in the model; ascending
  std::vector<std::string> unreadable_files;  ///< a message each: why tensors could not be looked at

  size_t count(Presence presence) const;
  uint64_t parameters() const;
  uint64_t bytes() const;
};

/// The weights of a folder, their files opened on demand; null if it holds none. @throws Corrupt, Io, NotFound if there are
/// some, and index or the only file can't be read
std::shared_ptr<const TensorStore> open_weights_on_demand(const std::filesystem::path& folder, const ModelConfig& config);

/// @param store null for no weights
TensorInventory take_inventory(const TensorStore* store, const ModelConfig& config);

/// The same for the tensors of one layer (from 0). Others are not looked at, nor their files opened.
TensorInventory take_inventory_of_layer(const TensorStore* store, const ModelConfig& config, size_t layer);

}  // namespace kilin

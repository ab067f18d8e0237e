// A smaller model of the same kind: config.json cut to fewer layers and experts, every width kept.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace kilin {

struct SyntheticShape {
  std::optional<size_t> layers = {};   ///< the first of the model; unset: all
  std::optional<size_t> experts = {};  ///< a layer; unset: as many as the model has
  DType dtype = DType::bf16;           ///< of the weights: bf16 or f32
};

/// The text of config.json for the smaller model, in the same spellings as the given one.
///
/// Each kind of layer stays in the model if there are enough layers: if the cut left only one kind of attention, the last layer
/// gets the other one; dense layers are cut before the last layer with experts. A token goes to as many experts as before, or
/// to all if there are fewer.
/// @param source names the text in errors. @throws as ModelConfig::parse, for the given text and for the result;
/// InvalidArgument for more layers or experts than the model has
std::string synthetic_config(std::string_view text, const std::string& source, const SyntheticShape& shape);

}  // namespace kilin

// The configuration of a Kimi-Linear model out of a GGUF file's keys, and of its tensors where older files lack keys.
#pragma once

#include "checkpoint/gguf_metadata.h"
#include "checkpoint/tensor_store.h"
#include "config/model_config.h"

namespace kilin {

/// @param tensors of the same file, by the file's own names; what is looked at is which of them are there, and the rows of
/// token_embd.weight if no key gives the size of the vocabulary. Its source names the file in errors.
/// @throws Corrupt for keys that are missing, contradictory, of a wrong type or out of range; Unsupported for another
/// architecture and for models that Kilin does not run. Every message names the file's key, its value and what was expected.
ModelConfig read_gguf_config(const GgufMetadata& metadata, const TensorStore& tensors);

}  // namespace kilin

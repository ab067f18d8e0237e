// transformers' own key names: its save_pretrained writes some tensors under other names and packs some of them. The rest of
// the engine sees the published names only.
#pragma once

#include <memory>

#include "checkpoint/tensor_store.h"
#include "config/model_config.h"

namespace kilin {

/// True if the names are those of transformers' own form.
bool has_native_names(const TensorStore& store);

/// A store with the published names over one with either form: `store` itself, or views into it that copy nothing (rows of the
/// packed convolution, of experts' gate_up_proj and down_proj).
std::shared_ptr<const TensorStore> with_published_names(std::shared_ptr<const TensorStore> store, const ModelConfig& config);

}  // namespace kilin

// GGUF's tensors under the names of the published checkpoint, so that the rest of the engine sees these only.
#pragma once

#include <memory>

#include "checkpoint/tensor_store.h"
#include "model/model_config.h"

namespace kilin {

/// A store with the published names and shapes over one with GGUF's. Nearly all are views that copy nothing, the experts' among
/// them, which are cut out of one tensor a layer. Made when first asked for, and kept: A_log = log(-ssm_a), and kv_b_proj,
/// which is put together from attn_k_b (transposed by head) and attn_v_b, or dequantised from attn_kv_b; both in fp32.
///
/// Tensors that have no place in the model keep their own names, and stored_name() gives GGUF's for the others. find() throws
/// Corrupt for experts or kv_b parts of another shape than the configuration's, and for an ssm_a that is no -exp(A_log).
/// Thread-safe.
std::shared_ptr<const TensorStore> gguf_with_published_names(std::shared_ptr<const TensorStore> gguf,
                                                             const ModelConfig& config);

}  // namespace kilin

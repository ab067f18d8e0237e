// GGUF's tensors under the names of the published checkpoint, so that the rest of the engine sees these only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "checkpoint/tensor_store.h"
#include "config/model_config.h"

namespace kilin {

/// A store with the published names and shapes over one with GGUF's. Nearly all are views that copy nothing, the experts' among
/// them, which are cut out of one tensor a layer (of one for both gate and up where a converter fused them). Made when first
/// asked for, and kept: A_log = log(-ssm_a), and kv_b_proj, which is put together from attn_k_b (transposed by head) and
/// attn_v_b, or dequantised from attn_kv_b; both in fp32, but kv_b_proj in bf16 where both its parts are.
///
/// Tensors that have no place in the model keep their own names, and stored_name() gives GGUF's for the others. find() throws
/// Corrupt for experts or kv_b parts of another shape than the configuration's, and for an ssm_a that is no -exp(A_log).
/// Thread-safe.
std::shared_ptr<const TensorStore> gguf_with_published_names(std::shared_ptr<const TensorStore> gguf,
                                                             const ModelConfig& config);

/// The name of a published tensor in a GGUF file: that which it is cut out of for an expert's, and attn_k_b, the first of two
/// parts, for kv_b_proj. @pre a name of the weight map
std::string gguf_name(std::string_view published);

/// attn_v_b, the second part, by the first one's name.
std::string gguf_value_b_name(std::string_view key_b);

}  // namespace kilin

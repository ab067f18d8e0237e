// Kimi Delta Attention: a delta rule whose state decays by key channel (Kimi Linear, section 3).
#pragma once

#include "config/model_config.h"
#include "model/linear.h"
#include "model/linear_recurrent_backend.h"

namespace kilin {

class KimiDeltaAttention {
 public:
  /// @param prefix "model.layers.N.self_attn."
  /// @param state_layer which of the layers with states this is, from 0
  static KimiDeltaAttention load(WeightSource& source, const std::string& prefix, const ModelConfig& config, int layer,
                                 size_t state_layer);

  /// `x` is the normed stream [T, hidden]; `out` [T, hidden] gets this layer's contribution to it, of
  /// which ranks hold parts: the caller reduces.
  /// @throws InvalidArgument, NotImplemented for a batch that the backend refuses (ForwardBatch::validate_states); nothing has
  /// moved then
  void forward(ExecContext& ctx, const LinearRecurrentBackend& backend, const ForwardBatch& batch, MatView<const float> x,
               MatView<float> out) const;

  size_t workspace_bytes(const LinearRecurrentBackend& backend, size_t tokens, size_t threads) const;

 private:
  KdaParameters parameters() const;

  Linear q_proj_, k_proj_, v_proj_;                           // [P, hidden]
  Tensor conv_;                                               // [W, 3P] q_conv1d | k_conv1d | v_conv1d
  Tensor A_log_, dt_bias_;                                    // [heads], [P]
  ExactLinear f_a_proj_, f_b_proj_;                           // [K, hidden], [P, K]: decay
  ExactLinear g_a_proj_, g_b_proj_;                           // [K, hidden], [P, K]: output gate
  ExactLinear b_proj_;                                        // [heads, hidden]
  Tensor o_norm_;                                             // [V]
  Linear o_proj_;                                             // [hidden, P]
  size_t hidden_ = 0, heads_ = 0, head_dim_ = 0, width_ = 0;  // P = heads x head_dim
  float eps_ = 0;
  int layer_ = 0;
  size_t state_layer_ = 0;
};

}  // namespace kilin

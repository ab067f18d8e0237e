// The seam between a linear-attention layer and the pools: who turns raw projections into head outputs and moves the states on.
#pragma once

#include <string_view>

#include "model/exec_context.h"
#include "model/forward_batch.h"

namespace kilin {

/// A KDA layer's own parameters, fp32. All views live as long as the layer.
struct KdaParameters {
  size_t heads;
  size_t head_dim;            ///< K = V
  MatView<const float> conv;  ///< [W, 3P]: q, k and v channels in turn; P = heads x head_dim
  const float* A_log;         ///< [heads]
  const float* dt_bias;       ///< [P]
  const float* o_norm;        ///< [head_dim]
  float eps;                  ///< of o_norm
};

/// A layer's projections for the T tokens of a batch. The backend may overwrite all of them.
struct KdaInputs {
  MatView<float> qkv;   ///< [T, 3P] raw q | k | v, before the convolution
  MatView<float> f;     ///< [T, P] decay before softplus, without dt_bias
  MatView<float> b;     ///< [T, heads] beta before the sigmoid
  MatView<float> gate;  ///< [T, P] of the norm, before the sigmoid
};

/// Stateless: everything that lasts is in the batch's pools. One a runner; safe to share among runners.
class LinearRecurrentBackend {
 public:
  virtual ~LinearRecurrentBackend() = default;
  virtual std::string_view name() const = 0;

  /// Runs every sequence of the batch in its own mode and writes its new state and convolution tail back in place. A sequence
  /// without tokens keeps every bit of both.
  /// It is the last to see a batch before states move, and checks it (ForwardBatch::validate_states), whoever checked before.
  /// @param layer the layer in the model, for taps
  /// @param state_layer the layer among those that have states, for the pool
  /// @param heads [T, heads x V]: the output after the gated norm
  /// @throws InvalidArgument, NotImplemented for a batch that validate_states refuses, or pools of other layers; nothing has
  /// moved then
  virtual void forward(ExecContext& ctx, const ForwardBatch& batch, int layer, size_t state_layer,
                       const KdaParameters& parameters, const KdaInputs& inputs, MatView<float> heads) const = 0;

  /// What forward takes from the workspace for `tokens` tokens on `threads` threads.
  virtual size_t workspace_bytes(const KdaParameters& parameters, size_t tokens, size_t threads) const = 0;
};

}  // namespace kilin

// The gated feed-forward: down(silu(gate x) * up x). The first layer's, and every layer's shared expert.
#pragma once

#include "model/linear.h"

namespace kilin {

/// The names that taps have for a KimiMlp's inner values.
struct MlpSites {
  int layer;
  Value gate, up;
};

class KimiMlp {
 public:
  /// @param prefix "model.layers.N.mlp." or "model.layers.N.block_sparse_moe.shared_experts."
  static KimiMlp load(WeightSource& source, const std::string& prefix, const MlpSites& sites);

  /// x [T, hidden] -> out [T, hidden]. Ranks hold parts of the sum: the caller reduces.
  void forward(ExecContext& ctx, const ActivationRows& x, MatView<float> out) const;

 private:
  Linear gate_proj_, up_proj_;  // [intermediate, hidden]
  Linear down_proj_;            // [hidden, intermediate]
  MlpSites sites_{};
};

}  // namespace kilin

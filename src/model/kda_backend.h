// The backend that the product runs: chunk_kda for Extend, fused_recurrent_kda for Decode.
#pragma once

#include "model/linear_recurrent_backend.h"

namespace kilin {

class KdaBackend final : public LinearRecurrentBackend {
 public:
  std::string_view name() const override { return "kda"; }
  void forward(ExecContext& ctx, const ForwardBatch& batch, int layer, size_t state_layer, const KdaParameters& parameters,
               const KdaInputs& inputs, MatView<float> heads) const override;
};

}  // namespace kilin

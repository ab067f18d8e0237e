// A KDA layer's inside with taps attached.
#pragma once

#include "model/kda_stages.h"

namespace kilin {

/// A layer by its number in the model, for taps, and among those that have states, for the pool.
struct KdaLayerNumbers {
  int layer;
  size_t state_layer;
};

/// What KdaBackend::forward does, a stage after the other for all tokens and heads, so that taps see and may change what stands
/// between. The same bytes, unless somebody asks for the states after every token: then the recurrence takes one at a time.
/// Allocates where states are shown.
/// @pre ctx.taps
void run_with_taps(ExecContext& ctx, const ForwardBatch& batch, const KdaLayerNumbers& numbers, const KdaParameters& p,
                   const KdaInputs& inputs, MatView<float> heads, const KdaThreadMemory& memory);

}  // namespace kilin

// A KDA layer whose inner values taps can see and change.
#pragma once

#include "model/kda_stages.h"

namespace kilin {

/// A layer by its number in the model, for taps, and among those that have states, for the pool.
struct KdaLayerNumbers {
  int layer;
  size_t state_layer;
};

/// Does what KdaBackend::forward does, but runs each stage for all tokens and heads before the next, so that taps can see and
/// change the values in between. Gives the same bytes, unless a tap asks for the states after every token: the recurrence then
/// goes token by token. Allocates where states are shown.
/// @pre ctx.taps
void run_with_taps(ExecContext& ctx, const ForwardBatch& batch, const KdaLayerNumbers& numbers, const KdaParameters& p,
                   const KdaInputs& inputs, MatView<float> heads, const KdaThreadMemory& memory);

}  // namespace kilin

// Latent attention in stages that can be looked at: keys, values, scores and probabilities, whole.
#pragma once

#include "model/exec_context.h"
#include "model/forward_batch.h"

namespace kilin {

/// A layer's dimensions and weight.
struct MlaParameters {
  size_t heads, nope, rope, value, rank;
  float scale;
  PackedMatrix kv_b_proj;  ///< [heads x (nope + value), rank], by head k_nope | v
  int layer;
  size_t latent_layer;

  size_t query_dim() const { return nope + rope; }
  size_t latent_width() const { return rank + rope; }
};

/// Whether a tap asks for a value that only staged_mla forms.
bool wants_staged_mla(const ExecContext& ctx, int layer);

/// The same attention as KimiMlaAttention's, within rounding, for both modes: decompresses each sequence's latents, its new
/// ones too, from the pool, and shows every value in between. Allocates.
/// @param q [T, heads x (nope + rope)]
/// @param heads [T, heads x value]: the output
/// @pre ctx.taps; the rows' latents are in the pool
void staged_mla(ExecContext& ctx, const ForwardBatch& batch, const MlaParameters& p, MatView<const float> q,
                MatView<float> heads);

}  // namespace kilin

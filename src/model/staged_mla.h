// Latent attention in stages that can be looked at: keys, values, scores and probabilities, whole.
#pragma once

#include "model/exec_context.h"
#include "model/forward_batch.h"

namespace kilin {

/// What a layer's attention is made of.
struct MlaParameters {
  size_t heads, nope, rope, value, rank;
  float scale;
  PackedMatrix kv_b_proj;  ///< [heads x (nope + value), rank], by head k_nope | v
  int layer;
  size_t latent_layer;

  size_t query_dim() const { return nope + rope; }
  size_t latent_width() const { return rank + rope; }
};

/// Whether somebody asks for a value that only this path forms.
bool wants_staged_mla(const ExecContext& ctx, int layer);

/// Attends as KimiMlaAttention does in either mode, within rounding: every row of every sequence reads the latents from the
/// pool, its own among them, decompressed. Shows what stands between. Allocates.
/// @param q [T, heads x (nope + rope)]
/// @param heads [T, heads x value]: the output
/// @pre ctx.taps; the rows' latents are in the pool
void staged_mla(ExecContext& ctx, const ForwardBatch& batch, const MlaParameters& p, MatView<const float> q,
                MatView<float> heads);

}  // namespace kilin

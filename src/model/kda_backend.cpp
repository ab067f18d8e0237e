#include "model/kda_backend.h"

#include <algorithm>

#include "core/error.h"
#include "model/kda_stages.h"
#include "model/tapped_kda.h"

namespace kilin {

namespace {

// A sequence's tails are read and written; the weights once a call.
StageCost conv_cost(const ForwardBatch& batch, const KdaParameters& p) {
  const uint64_t channels = p.conv.cols(), width = p.conv.rows();
  StageCost cost = {.weight_bytes = channels * width * sizeof(float), .fp32_operations = 2 * batch.tokens() * channels * width};
  for (size_t n = 0; n < batch.sequences.size(); ++n)
    if (batch.tokens_of(n) > 0) cost.state_bytes += 2 * (width - 1) * channels * sizeof(float);
  return cost;
}

// Of the recurrence itself, a token and head: the decay K V, its correction and its reading 2 K V for each of S^T k, k v^T and
// S^T q. What chunks compute for the same is their own affair.
StageCost recurrence_cost(const ForwardBatch& batch, const KdaParameters& p) {
  StageCost cost = {.fp32_operations = 7 * batch.tokens() * p.heads * p.head_dim * p.head_dim};
  for (size_t n = 0; n < batch.sequences.size(); ++n)
    if (batch.tokens_of(n) > 0) cost.state_bytes += 2 * p.heads * kda_state_floats(p.head_dim, p.head_dim) * sizeof(float);
  return cost;
}

// Floats in whole cache lines: neighbours' memory shares none.
size_t in_lines(size_t floats) { return Workspace::rounded(floats * sizeof(float)) / sizeof(float); }

size_t scratch_floats(const KdaParameters& p) {
  return in_lines(std::max(chunk_kda_scratch(p.head_dim, p.head_dim), fused_recurrent_kda_scratch(p.head_dim, p.head_dim)));
}
size_t tile_floats(const KdaParameters& p) { return in_lines(4 * kKdaTileTokens * p.head_dim); }

// A pool that was made for other layers has their states where this one would write its own.
void validate_pool(const RecurrentStatePool::Dimensions& pool, size_t state_layer, const KdaParameters& p) {
  if (state_layer >= pool.layers)
    raise(ErrorCode::InvalidArgument, "a KDA layer has states of layer {}; the pool has {}", state_layer, pool.layers);
  if (pool.heads != p.heads || pool.key_dim != p.head_dim || pool.value_dim != p.head_dim ||
      pool.conv_rows + 1 != p.conv.rows() || pool.conv_cols != p.conv.cols())
    raise(ErrorCode::InvalidArgument,
          "the pool has states of {} heads of [{}, {}] and tails of [{}, {}]; a KDA layer expects {} of [{}, {}] and [{}, {}]",
          pool.heads, pool.key_dim, pool.value_dim, pool.conv_rows, pool.conv_cols, p.heads, p.head_dim, p.head_dim,
          p.conv.rows() - 1, p.conv.cols());
}

}  // namespace

void KdaBackend::forward(ExecContext& ctx, const ForwardBatch& batch, int layer, size_t state_layer, const KdaParameters& p,
                         const KdaInputs& inputs, MatView<float> heads) const {
  batch.validate_states(inputs.qkv.rows());
  validate_pool(batch.pools->states.dimensions(), state_layer, p);
  Workspace::Frame frame(ctx.workspace);
  const size_t threads = ctx.pool.size();
  const KdaThreadMemory memory = {.scratch = frame.array<float>(threads * scratch_floats(p)),
                                  .tiles = frame.array<float>(threads * tile_floats(p)),
                                  .scratch_each = scratch_floats(p),
                                  .tile_each = tile_floats(p)};

  const StageScope stage = ctx.stage(Stage::KdaRecurrence);
  ctx.count(conv_cost(batch, p));
  ctx.count(recurrence_cost(batch, p));
  if (ctx.taps != nullptr) return run_with_taps(ctx, batch, {layer, state_layer}, p, inputs, heads, memory);
  const KdaStages stages(ctx, batch, state_layer, p, inputs, heads);
  stages.for_each_group(stages.heads_at_once(), [&](size_t n, size_t first, size_t last, size_t worker) {
    for (size_t h = first; h < last; ++h) stages.copy_tails(n, h);
    stages.for_each_tile(n, [&](size_t begin, size_t end) {
      const auto tokens = [&](size_t h) {
        return stages.in_tile(n, h, begin, end, memory.tile_of(worker) + (h - first) * 4 * (end - begin) * p.head_dim);
      };
      for (size_t h = first; h < last; ++h) {
        stages.convolve(tokens(h));
        stages.decay(tokens(h));
      }
      for (size_t h = first; h < last; ++h) stages.recur(tokens(h), memory.scratch_of(worker));
      for (size_t h = first; h < last; ++h) stages.normalize(tokens(h));
    });
  });
}

size_t KdaBackend::workspace_bytes(const KdaParameters& p, size_t, size_t threads) const {
  return Workspace::rounded(threads * scratch_floats(p) * sizeof(float)) +
         Workspace::rounded(threads * tile_floats(p) * sizeof(float));
}

}  // namespace kilin

#include "model/kda_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/ops.h"

namespace kilin {

namespace {

constexpr size_t kConvChannels = 256;  // channels a slice of the convolution

// The tail that a sequence has at `position`: the last rows of (tail before this span, raw rows of the span).
void copy_tail_at(MatView<const float> tail, MatView<const float> raw, size_t row, MatView<float> out) {
  const size_t rows = tail.rows();
  for (size_t r = 0; r < rows; ++r) {
    const size_t at = row + r;  // counted over tail and raw together
    const float* from = at < rows ? tail.row(at) : raw.row(at - rows);
    std::memcpy(out.row(r), from, raw.cols() * sizeof(float));
  }
}

// Convolution and SiLU of every sequence; leaves the tails behind, also those of the snapshots.
void convolve(ExecContext& ctx, const ForwardBatch& batch, size_t state_layer, MatView<const float> weight,
              MatView<const float> raw, MatView<float> out) {
  RecurrentStatePool& states = batch.pools->states;
  for (size_t n = 0; n < batch.sequences.size(); ++n) {
    const SequenceSpan& sequence = batch.sequences[n];
    if (batch.tokens_of(n) == 0) continue;
    const MatView<const float> rows = raw.rows(batch.cu_seqlens[n], batch.cu_seqlens[n + 1]);
    const MatView<float> tail = states.conv_tail(sequence.state_slot, state_layer);
    for (const SnapshotRequest& request : sequence.snapshots)
      copy_tail_at(tail, rows, request.position - sequence.start, states.conv_tail(*request.snapshot, state_layer));
    const size_t slices = (raw.cols() + kConvChannels - 1) / kConvChannels;
    ctx.pool.parallel_for(slices, grain(kConvChannels * rows.rows() * 8), [&](const Slice& s) {
      const size_t begin = s.begin * kConvChannels, end = std::min(s.end * kConvChannels, raw.cols());
      ctx.kernels.causal_conv_silu(rows.columns(begin, end), weight.rows(begin, end), tail.columns(begin, end),
                                   out.rows(batch.cu_seqlens[n], batch.cu_seqlens[n + 1]).columns(begin, end));
    });
  }
}

void gate(ExecContext& ctx, const KdaParameters& p, MatView<float> f) {
  ctx.pool.parallel_for(f.rows(), grain(f.cols() * 16), [&](const Slice& s) {
    const MatView<float> rows = f.rows(s.begin, s.end);
    ctx.kernels.kda_gate(rows, p.A_log, p.dt_bias, p.head_dim, rows);
  });
}

// A sequence's tails are read and written; the weights once a call.
StageCost conv_cost(const ForwardBatch& batch, const KdaParameters& p) {
  const uint64_t channels = p.conv.rows(), width = p.conv.cols();
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

// A thread's, in whole cache lines: neighbours' scratch shares none.
size_t scratch_floats(const KdaParameters& p) {
  const size_t floats =
      std::max(chunk_kda_scratch(p.head_dim, p.head_dim), fused_recurrent_kda_scratch(p.head_dim, p.head_dim));
  return Workspace::rounded(floats * sizeof(float)) / sizeof(float);
}

}  // namespace

void KdaBackend::forward(ExecContext& ctx, const ForwardBatch& batch, int layer, size_t state_layer, const KdaParameters& p,
                         const KdaInputs& inputs, MatView<float> heads) const {
  Workspace::Frame frame(ctx.workspace);
  const size_t tokens = inputs.qkv.rows(), width = p.heads * p.head_dim;
  const MatView<float> qkv = frame.matrix(tokens, 3 * width);  // [T, 3P] after convolution and SiLU
  const MatView<float> q = qkv.columns(0, width), k = qkv.columns(width, 2 * width), v = qkv.columns(2 * width, 3 * width);

  StageScope stage = ctx.stage(Stage::KdaConvGates);
  ctx.count(conv_cost(batch, p));
  convolve(ctx, batch, state_layer, p.conv, inputs.qkv, qkv);
  ctx.tap(Value::AttentionQueries, layer, q);
  ctx.tap(Value::AttentionKeys, layer, k);
  ctx.tap(Value::AttentionValues, layer, v);
  gate(ctx, p, inputs.f);
  ctx.tap(Value::Decays, layer, inputs.f);
  sigmoid(ctx, inputs.b);
  ctx.tap(Value::Betas, layer, inputs.b);
  l2_norm(ctx, q, p.head_dim, 1.0f / std::sqrt(static_cast<float>(p.head_dim)));  // scale after the norm; k has none
  l2_norm(ctx, k, p.head_dim, 1.0f);

  stage.next(Stage::KdaRecurrence);
  ctx.count(recurrence_cost(batch, p));
  const std::span<float> scratch = frame.array<float>(ctx.pool.size() * scratch_floats(p));
  RecurrentStatePool& states = batch.pools->states;
  ctx.pool.parallel_for(batch.sequences.size() * p.heads, 1, [&](const Slice& s) {
    const std::span<float> own = scratch.subspan(s.worker * scratch_floats(p), scratch_floats(p));
    for (size_t i = s.begin; i < s.end; ++i) {
      const size_t n = i / p.heads, h = i % p.heads;
      const SequenceSpan& sequence = batch.sequences[n];
      const size_t begin = batch.cu_seqlens[n], end = batch.cu_seqlens[n + 1];
      if (begin == end) continue;
      const auto head = [&](MatView<float> m) { return m.rows(begin, end).columns(h * p.head_dim, (h + 1) * p.head_dim); };
      KdaHead unit = {.q = head(q),
                      .k = head(k),
                      .v = head(v),
                      .g = head(inputs.f),
                      .beta = inputs.b.row(begin) + h,
                      .beta_stride = inputs.b.stride(),
                      .start = sequence.start,
                      .state = states.head_state(sequence.state_slot, state_layer, h),
                      .out = head(heads)};
      if (sequence.mode == ForwardMode::Decode) {
        ctx.kernels.fused_recurrent_kda(unit, own);
        continue;
      }
      KdaSnapshot snapshots[kMaxSnapshots];
      const size_t count = sequence.snapshots.size();
      for (size_t j = 0; j < count; ++j)
        snapshots[j] = {sequence.snapshots[j].position, states.head_state(*sequence.snapshots[j].snapshot, state_layer, h)};
      unit.snapshots = {snapshots, count};
      ctx.kernels.chunk_kda(unit, own);
    }
  });
  ctx.tap(Value::AttentionHeadOutputs, layer, heads);
}

size_t KdaBackend::workspace_bytes(const KdaParameters& p, size_t tokens, size_t threads) const {
  return Workspace::rounded(tokens * 3 * p.heads * p.head_dim * sizeof(float)) +
         Workspace::rounded(threads * scratch_floats(p) * sizeof(float));
}

}  // namespace kilin

#include "model/kda_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/ops.h"

namespace kilin {

namespace {

// Tokens with which a head goes through all stages: what one leaves is in the second-level cache for the next. Tiles end at
// multiples of this many tokens of absolute position, as chunks do.
constexpr size_t kTileTokens = 2 * kKdaChunk;

// The tail that a sequence has at `position`: the last rows of (tail before this span, raw rows of the span).
void copy_tail_at(MatView<const float> tail, MatView<const float> raw, size_t row, MatView<float> out) {
  const size_t rows = tail.rows();
  for (size_t r = 0; r < rows; ++r) {
    const size_t at = row + r;  // counted over tail and raw together
    const float* from = at < rows ? tail.row(at) : raw.row(at - rows);
    std::memcpy(out.row(r), from, raw.cols() * sizeof(float));
  }
}

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
size_t tile_floats(const KdaParameters& p) { return in_lines(4 * kTileTokens * p.head_dim); }

// Some tokens of one head of one sequence.
struct HeadTokens {
  size_t n, h;
  size_t begin, end;       // rows of the batch
  MatView<float> q, k, v;  // [T, head_dim] after convolution and SiLU
  MatView<float> g;        // [T, head_dim] log decay
};

// What happens to a head's tokens, in this order.
class Stages {
 public:
  Stages(ExecContext& ctx, const ForwardBatch& batch, size_t state_layer, const KdaParameters& p, const KdaInputs& in,
         MatView<float> heads)
      : ctx_(ctx), batch_(batch), state_layer_(state_layer), p_(p), in_(in), heads_(heads) {}

  // Leaves the convolution's tails that the snapshots want; before anything moves the tail on.
  void copy_tails(size_t n, size_t h) const {
    const SequenceSpan& sequence = batch_.sequences[n];
    RecurrentStatePool& states = batch_.pools->states;
    for (const SnapshotRequest& request : sequence.snapshots)
      for (size_t stream = 0; stream < kStreams; ++stream)
        copy_tail_at(of_stream(states.conv_tail(sequence.state_slot, state_layer_), stream, h),
                     of_stream(in_.qkv.rows(batch_.cu_seqlens[n], batch_.cu_seqlens[n + 1]), stream, h),
                     request.position - sequence.start,
                     of_stream(states.conv_tail(*request.snapshot, state_layer_), stream, h));
  }

  void convolve(const HeadTokens& t) const {
    const MatView<float> tail = batch_.pools->states.conv_tail(batch_.sequences[t.n].state_slot, state_layer_);
    const MatView<float> out[kStreams] = {t.q, t.k, t.v};
    for (size_t stream = 0; stream < kStreams; ++stream)
      ctx_.kernels.causal_conv_silu(of_stream(in_.qkv.rows(t.begin, t.end), stream, t.h), of_stream(p_.conv, stream, t.h),
                                    of_stream(tail, stream, t.h), out[stream]);
  }

  void decay(const HeadTokens& t) const {
    ctx_.kernels.kda_gate(of_head(in_.f.rows(t.begin, t.end), t.h), p_.A_log + t.h, p_.dt_bias + t.h * p_.head_dim, p_.head_dim,
                          t.g);
    const MatView<float> beta = in_.b.rows(t.begin, t.end).columns(t.h, t.h + 1);
    ctx_.kernels.sigmoid(beta, beta);
  }

  void recur(const HeadTokens& t, std::span<float> scratch) const {
    ctx_.kernels.l2_norm(t.q, p_.head_dim, 1.0f / std::sqrt(static_cast<float>(p_.head_dim)));  // scale after the norm
    ctx_.kernels.l2_norm(t.k, p_.head_dim, 1.0f);                                               // k has none
    const SequenceSpan& sequence = batch_.sequences[t.n];
    RecurrentStatePool& states = batch_.pools->states;
    KdaHead head = {.q = t.q,
                    .k = t.k,
                    .v = t.v,
                    .g = t.g,
                    .beta = in_.b.row(t.begin) + t.h,
                    .beta_stride = in_.b.stride(),
                    .start = sequence.start + t.begin - batch_.cu_seqlens[t.n],
                    .state = states.head_state(sequence.state_slot, state_layer_, t.h),
                    .out = of_head(heads_.rows(t.begin, t.end), t.h)};
    if (sequence.mode == ForwardMode::Decode) return ctx_.kernels.fused_recurrent_kda(head, scratch);

    KdaSnapshot snapshots[kMaxSnapshots];
    size_t count = 0;
    for (const SnapshotRequest& request : sequence.snapshots)
      if (request.position > head.start && request.position <= head.start + head.q.rows())
        snapshots[count++] = {request.position, states.head_state(*request.snapshot, state_layer_, t.h)};
    head.snapshots = {snapshots, count};
    ctx_.kernels.chunk_kda(head, scratch);
  }

  void normalize(const HeadTokens& t) const {
    ctx_.kernels.gated_rms_norm(of_head(heads_.rows(t.begin, t.end), t.h), p_.o_norm,
                                of_head(in_.gate.rows(t.begin, t.end), t.h), p_.head_dim, p_.eps);
  }

  // How many heads go through each stage before the next begins, where all spans are short: the recurrence is then one stream
  // through their states, which other stages in between would stop again and again.
  size_t heads_at_once() const {
    size_t most = 1;
    for (size_t n = 0; n < batch_.sequences.size(); ++n) most = std::max(most, batch_.tokens_of(n));
    const size_t fair = batch_.sequences.size() * p_.heads / ctx_.pool.size();
    return std::max<size_t>(1, std::min({p_.heads, kTileTokens / most, fair}));
  }

  // f(n, first head, end, worker) for groups of `size` heads of every sequence that has tokens, shared among the threads.
  template <typename F>
  void for_each_group(size_t size, F&& f) const {
    const size_t groups = (p_.heads + size - 1) / size;
    ctx_.pool.parallel_for(batch_.sequences.size() * groups, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) {
        const size_t n = i / groups, first = i % groups * size;
        if (batch_.tokens_of(n) > 0) f(n, first, std::min(first + size, p_.heads), s.worker);
      }
    });
  }
  template <typename F>
  void for_each_head(F&& f) const {
    for_each_group(1, [&](size_t n, size_t h, size_t, size_t worker) { f(n, h, worker); });
  }

  // f(begin, end) for the rows of a sequence, a tile after the other.
  template <typename F>
  void for_each_tile(size_t n, F&& f) const {
    for (size_t begin = batch_.cu_seqlens[n], end = batch_.cu_seqlens[n + 1]; begin < end;) {
      const size_t position = batch_.sequences[n].start + begin - batch_.cu_seqlens[n];
      const size_t tokens = std::min(end - begin, kTileTokens - position % kTileTokens);
      f(begin, begin + tokens);
      begin += tokens;
    }
  }

  // A head's tokens of a tile, in memory for 4 x (end - begin) x head_dim floats.
  HeadTokens in_tile(size_t n, size_t h, size_t begin, size_t end, float* memory) const {
    const auto matrix = [&](size_t i) {
      return MatView<float>(memory + i * (end - begin) * p_.head_dim, end - begin, p_.head_dim);
    };
    return {n, h, begin, end, matrix(0), matrix(1), matrix(2), matrix(3)};
  }

  // All of a head's tokens where the inputs have them; q, k and v as put_back left them.
  HeadTokens in_place(size_t n, size_t h) const {
    const size_t begin = batch_.cu_seqlens[n], end = batch_.cu_seqlens[n + 1];
    const MatView<float> qkv = in_.qkv.rows(begin, end);
    return {
        n, h, begin, end, of_stream(qkv, 0, h), of_stream(qkv, 1, h), of_stream(qkv, 2, h), of_head(in_.f.rows(begin, end), h)};
  }

  // A tile's q, k and v take the place of the raw ones, which nothing reads again: the tail has moved on.
  void put_back(const HeadTokens& t) const {
    const MatView<float> from[kStreams] = {t.q, t.k, t.v};
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const MatView<float> to = of_stream(in_.qkv.rows(t.begin, t.end), stream, t.h);
      for (size_t r = 0; r < to.rows(); ++r) std::ranges::copy(from[stream][r], to.row(r));
    }
  }

 private:
  static constexpr size_t kStreams = 3;  // q, k, v

  template <typename T>
  MatView<T> of_head(MatView<T> m, size_t h) const {
    return m.columns(h * p_.head_dim, (h + 1) * p_.head_dim);
  }
  template <typename T>
  MatView<T> of_stream(MatView<T> m, size_t stream, size_t h) const {
    return of_head(m, stream * p_.heads + h);
  }

  ExecContext& ctx_;
  const ForwardBatch& batch_;
  size_t state_layer_;
  const KdaParameters& p_;
  const KdaInputs& in_;
  MatView<float> heads_;
};

}  // namespace

void KdaBackend::forward(ExecContext& ctx, const ForwardBatch& batch, int layer, size_t state_layer, const KdaParameters& p,
                         const KdaInputs& inputs, MatView<float> heads) const {
  Workspace::Frame frame(ctx.workspace);
  const Stages stages(ctx, batch, state_layer, p, inputs, heads);
  const size_t scratch_each = scratch_floats(p), tile_each = tile_floats(p);
  const std::span<float> scratch = frame.array<float>(ctx.pool.size() * scratch_each);
  const std::span<float> tiles = frame.array<float>(ctx.pool.size() * tile_each);
  const auto scratch_of = [&](size_t worker) { return scratch.subspan(worker * scratch_each, scratch_each); };

  const auto tile_of = [&](size_t worker) { return tiles.data() + worker * tile_each; };

  const StageScope stage = ctx.stage(Stage::KdaRecurrence);
  ctx.count(conv_cost(batch, p));
  ctx.count(recurrence_cost(batch, p));
  if (ctx.taps == nullptr) {
    stages.for_each_group(stages.heads_at_once(), [&](size_t n, size_t first, size_t last, size_t worker) {
      for (size_t h = first; h < last; ++h) stages.copy_tails(n, h);
      stages.for_each_tile(n, [&](size_t begin, size_t end) {
        const auto tokens = [&](size_t h) {
          return stages.in_tile(n, h, begin, end, tile_of(worker) + (h - first) * 4 * (end - begin) * p.head_dim);
        };
        for (size_t h = first; h < last; ++h) {
          stages.convolve(tokens(h));
          stages.decay(tokens(h));
        }
        for (size_t h = first; h < last; ++h) stages.recur(tokens(h), scratch_of(worker));
        for (size_t h = first; h < last; ++h) stages.normalize(tokens(h));
      });
    });
    return;
  }

  // Taps see, and may change, the values of all tokens and heads between two stages.
  const size_t width = p.heads * p.head_dim;
  stages.for_each_head([&](size_t n, size_t h, size_t worker) {
    stages.copy_tails(n, h);
    stages.for_each_tile(n, [&](size_t begin, size_t end) {
      const HeadTokens tokens = stages.in_tile(n, h, begin, end, tile_of(worker));
      stages.convolve(tokens);
      stages.put_back(tokens);
    });
    stages.decay(stages.in_place(n, h));
  });
  ctx.tap(Value::AttentionQueries, layer, inputs.qkv.columns(0, width));
  ctx.tap(Value::AttentionKeys, layer, inputs.qkv.columns(width, 2 * width));
  ctx.tap(Value::AttentionValues, layer, inputs.qkv.columns(2 * width, 3 * width));
  ctx.tap(Value::Decays, layer, inputs.f);
  ctx.tap(Value::Betas, layer, inputs.b);
  stages.for_each_head([&](size_t n, size_t h, size_t worker) { stages.recur(stages.in_place(n, h), scratch_of(worker)); });
  ctx.tap(Value::AttentionHeadOutputs, layer, heads);
  stages.for_each_head([&](size_t n, size_t h, size_t) { stages.normalize(stages.in_place(n, h)); });
}

size_t KdaBackend::workspace_bytes(const KdaParameters& p, size_t, size_t threads) const {
  return Workspace::rounded(threads * scratch_floats(p) * sizeof(float)) +
         Workspace::rounded(threads * tile_floats(p) * sizeof(float));
}

}  // namespace kilin

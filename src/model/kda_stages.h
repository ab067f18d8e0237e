// What happens to the tokens of a KDA layer, stage by stage: convolution, decays, recurrence, norm. The product's backend runs
// them tile by tile, a pass with taps one after the other over all tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "model/linear_recurrent_backend.h"
#include "model/ops.h"

namespace kilin {

// Tokens with which a head goes through all stages: what one leaves is in the second-level cache for the next. Tiles end at
// multiples of this many tokens of absolute position, as chunks do.
inline constexpr size_t kKdaTileTokens = 2 * kKdaChunk;

// Some tokens of one head of one sequence.
struct KdaHeadTokens {
  size_t n, h;
  size_t begin, end;       // rows of the batch
  MatView<float> q, k, v;  // [T, head_dim] after convolution and SiLU
  MatView<float> g;        // [T, head_dim] log decay
};

// The tail that a sequence has at `position`: the last rows of (tail before this span, raw rows of the span).
inline void copy_tail_at(MatView<const float> tail, MatView<const float> raw, size_t row, MatView<float> out) {
  const size_t rows = tail.rows();
  for (size_t r = 0; r < rows; ++r) {
    const size_t at = row + r;  // counted over tail and raw together
    const float* from = at < rows ? tail.row(at) : raw.row(at - rows);
    std::memcpy(out.row(r), from, raw.cols() * sizeof(float));
  }
}

// Memory of the threads: what a kernel works in, and a tile's q, k, v and g.
struct KdaThreadMemory {
  std::span<float> scratch, tiles;
  size_t scratch_each, tile_each;

  std::span<float> scratch_of(size_t worker) const { return scratch.subspan(worker * scratch_each, scratch_each); }
  float* tile_of(size_t worker) const { return tiles.data() + worker * tile_each; }
};

// What happens to a head's tokens, in this order.
class KdaStages {
 public:
  KdaStages(ExecContext& ctx, const ForwardBatch& batch, size_t state_layer, const KdaParameters& p, const KdaInputs& in,
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

  void convolve(const KdaHeadTokens& t) const {
    const MatView<float> tail = batch_.pools->states.conv_tail(batch_.sequences[t.n].state_slot, state_layer_);
    const MatView<float> out[kStreams] = {t.q, t.k, t.v};
    for (size_t stream = 0; stream < kStreams; ++stream)
      ctx_.kernels.causal_conv_silu(of_stream(in_.qkv.rows(t.begin, t.end), stream, t.h), of_stream(p_.conv, stream, t.h),
                                    of_stream(tail, stream, t.h), out[stream]);
  }

  void decay(const KdaHeadTokens& t) const {
    ctx_.kernels.kda_gate(of_head(in_.f.rows(t.begin, t.end), t.h), p_.A_log + t.h, p_.dt_bias + t.h * p_.head_dim, p_.head_dim,
                          t.g);
    const MatView<float> beta = in_.b.rows(t.begin, t.end).columns(t.h, t.h + 1);
    ctx_.kernels.sigmoid(beta, beta);
  }

  void recur(const KdaHeadTokens& t, std::span<float> scratch) const {
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

  void normalize(const KdaHeadTokens& t) const {
    ctx_.kernels.gated_rms_norm(of_head(heads_.rows(t.begin, t.end), t.h), p_.o_norm,
                                of_head(in_.gate.rows(t.begin, t.end), t.h), p_.head_dim, p_.eps);
  }

  // How many heads go through each stage before the next begins, where all spans are short: the recurrence is then one stream
  // through their states, which other stages in between would stop again and again.
  size_t heads_at_once() const {
    size_t most = 1;
    for (size_t n = 0; n < batch_.sequences.size(); ++n) most = std::max(most, batch_.tokens_of(n));
    const size_t fair = batch_.sequences.size() * p_.heads / ctx_.pool.size();
    return std::max<size_t>(1, std::min({p_.heads, kKdaTileTokens / most, fair}));
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
      const size_t tokens = std::min(end - begin, kKdaTileTokens - position % kKdaTileTokens);
      f(begin, begin + tokens);
      begin += tokens;
    }
  }

  // A head's tokens of a tile, in memory for 4 x (end - begin) x head_dim floats.
  KdaHeadTokens in_tile(size_t n, size_t h, size_t begin, size_t end, float* memory) const {
    const auto matrix = [&](size_t i) {
      return MatView<float>(memory + i * (end - begin) * p_.head_dim, end - begin, p_.head_dim);
    };
    return {n, h, begin, end, matrix(0), matrix(1), matrix(2), matrix(3)};
  }

  // Some of a head's tokens where the inputs have them; q, k and v as put_back left them.
  KdaHeadTokens in_place(size_t n, size_t h, size_t begin, size_t end) const {
    const MatView<float> qkv = in_.qkv.rows(begin, end);
    return {
        n, h, begin, end, of_stream(qkv, 0, h), of_stream(qkv, 1, h), of_stream(qkv, 2, h), of_head(in_.f.rows(begin, end), h)};
  }
  KdaHeadTokens in_place(size_t n, size_t h) const { return in_place(n, h, batch_.cu_seqlens[n], batch_.cu_seqlens[n + 1]); }

  // A tile's q, k and v take the place of the raw ones, which nothing reads again: the tail has moved on.
  void put_back(const KdaHeadTokens& t) const {
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

}  // namespace kilin

#include "model/kimi_mla_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kilin {

namespace {

constexpr size_t kQueryRows = 32;  // query rows of one head a tile (Extend)
constexpr size_t kHeadGroup = 16;  // heads that share one read of a block of latents (Decode): they fill a vector
constexpr size_t kWave = 32;       // blocks of the past whose partial softmaxes are held at once (Decode)

size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

size_t floats(size_t n) { return Workspace::rounded(n * sizeof(float)); }

}  // namespace

KimiMlaAttention KimiMlaAttention::load(WeightSource& source, const std::string& prefix, const ModelConfig& c, int layer,
                                        size_t latent_layer) {
  KimiMlaAttention a;
  a.hidden_ = c.hidden_size;
  a.heads_ = c.num_attention_heads;
  a.nope_ = c.qk_nope_head_dim;
  a.rope_ = c.qk_rope_head_dim;
  a.value_ = c.v_head_dim;
  a.rank_ = c.kv_lora_rank;
  a.scale_ = 1.0f / std::sqrt(static_cast<float>(a.query_dim()));
  a.layer_ = layer;
  a.latent_layer_ = latent_layer;
  a.q_proj_ = Linear::load(source, prefix + "q_proj.weight", a.heads_ * a.query_dim(), c.hidden_size);
  a.kv_a_proj_with_mqa_ = Linear::load(source, prefix + "kv_a_proj_with_mqa.weight", a.latent_width(), c.hidden_size);
  // eps 1e-6, not rms_norm_eps: the published class's default, and what the weights were trained with.
  a.kv_a_layernorm_ = RmsNorm::load(source, prefix + "kv_a_layernorm.weight", a.rank_, 1e-6f);
  a.kv_b_proj_ = source.dense(prefix + "kv_b_proj.weight", a.heads_ * (a.nope_ + a.value_), a.rank_);
  a.o_proj_ = Linear::load(source, prefix + "o_proj.weight", c.hidden_size, a.heads_ * a.value_);
  return a;
}

void KimiMlaAttention::forward(ExecContext& ctx, const ForwardBatch& batch, MatView<const float> x, MatView<float> out) const {
  Workspace::Frame frame(ctx.workspace);
  const size_t tokens = x.rows();
  StageScope stage = ctx.stage(Stage::MlaProjections);
  const ActivationRows rows(ctx, frame, x);
  auto q = frame.matrix(tokens, heads_ * query_dim());  // [T, heads x (nope + rope)]; the rope channels are never rotated
  auto latent = frame.matrix(tokens, latent_width());   // [T, rank + rope] c | k_rope
  auto heads = frame.matrix(tokens, heads_ * value_);   // [T, heads x value]

  q_proj_.apply(ctx, rows, q);
  kv_a_proj_with_mqa_.apply(ctx, rows, latent);
  const MatView<float> c = latent.columns(0, rank_);
  kv_a_layernorm_.apply(ctx, c, c);  // the latent only; k_rope has no norm

  stage.next(Stage::MlaAttention);
  count_attention(ctx, batch);
  for (size_t n = 0; n < batch.sequences.size(); ++n) {
    const SequenceSpan& sequence = batch.sequences[n];
    const size_t begin = batch.cu_seqlens[n], end = batch.cu_seqlens[n + 1];
    if (begin == end) continue;
    batch.pools->latents.write(latent_layer_, sequence.pages, sequence.start, latent.rows(begin, end));
    if (sequence.mode == ForwardMode::Extend) {
      extend(ctx, batch, n, q.rows(begin, end), heads.rows(begin, end));
    } else {
      for (size_t row = begin; row < end; ++row)
        decode(ctx, batch.pools->latents, sequence.pages, sequence.start + row - begin, q.rows(row, row + 1),
               heads.rows(row, row + 1));
    }
  }
  ctx.tap(Value::AttentionHeadOutputs, layer_, heads);
  stage.next(Stage::MlaOutput);
  o_proj_.apply(ctx, ActivationRows(ctx, frame, heads), out);
}

// Latents are written and read once, by a query and key: scores and the weighted sum, in the heads' own width or, absorbed, in
// the latents'. Absorbed, all rows of a batch need kv_b_proj but once; to decompress is a product, which counts itself.
void KimiMlaAttention::count_attention(ExecContext& ctx, const ForwardBatch& batch) const {
  if (ctx.profile == nullptr) return;
  StageCost cost;
  const size_t row_bytes = latent_row_bytes(batch.pools->latents.dimensions().type, latent_width());
  for (size_t n = 0; n < batch.sequences.size(); ++n) {
    const uint64_t rows = batch.tokens_of(n), start = batch.sequences[n].start;
    if (rows == 0) continue;
    const uint64_t pairs = rows * start + rows * (rows + 1) / 2;  // of a query and a key that it sees
    cost.latent_bytes += rows * row_bytes;
    if (batch.sequences[n].mode == ForwardMode::Extend) {
      cost.latent_bytes += (start + rows) * row_bytes;
      cost.fp32_operations += 2 * heads_ * pairs * (query_dim() + value_);
    } else {
      cost.latent_bytes += pairs * row_bytes;
      cost.fp32_operations += 2 * heads_ * (pairs * (latent_width() + rank_) + rows * rank_ * (nope_ + value_));
      cost.weight_bytes = kv_b_proj_.view.bytes();
    }
  }
  ctx.profile->add(cost);
}

void KimiMlaAttention::extend(ExecContext& ctx, const ForwardBatch& batch, size_t n, MatView<const float> q,
                              MatView<float> heads) const {
  Workspace::Frame frame(ctx.workspace);
  const SequenceSpan& sequence = batch.sequences[n];
  const size_t rows = q.rows(), start = sequence.start, stop = start + rows;
  auto latents = frame.matrix(kMlaBlock, latent_width());        // [S, rank + rope] of one block, read back from the pool
  auto kv = frame.matrix(kMlaBlock, heads_ * (nope_ + value_));  // [S, heads x (k_nope | v)]
  auto max = frame.matrix(rows, heads_), sum = frame.matrix(rows, heads_);  // running softmax of every row and head
  const std::span<float> scratch = frame.array<float>(ctx.pool.size() * mla_extend_scratch(kQueryRows, query_dim()));
  const size_t scratch_each = mla_extend_scratch(kQueryRows, query_dim());
  std::fill_n(max.data(), rows * heads_, -std::numeric_limits<float>::infinity());
  std::fill_n(sum.data(), rows * heads_, 0.0f);
  for (size_t r = 0; r < rows; ++r) std::ranges::fill(heads[r], 0.0f);

  for (size_t block = 0; block < stop; block += kMlaBlock) {
    const size_t keys = std::min(kMlaBlock, stop - block);
    const size_t slices = divide_up(keys, LatentKvPool::kPageTokens);
    ctx.pool.parallel_for(slices, 1, [&](const Slice& s) {
      const size_t from = s.begin * LatentKvPool::kPageTokens, to = std::min(s.end * LatentKvPool::kPageTokens, keys);
      batch.pools->latents.read(latent_layer_, sequence.pages, block + from, latents.rows(from, to));
    });
    matmul(ctx, kv_b_proj_.view, latents.rows(0, keys).columns(0, rank_), kv.rows(0, keys));

    const size_t first = block > start ? block - start : 0;  // rows before it see nothing of this block
    const size_t tiles = divide_up(rows - first, kQueryRows);
    ctx.pool.parallel_for(tiles * heads_, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) {
        const size_t h = i / tiles, from = first + i % tiles * kQueryRows, to = std::min(from + kQueryRows, rows);
        const size_t at = h * (nope_ + value_);
        ctx.kernels.mla_extend_block({.q = q.rows(from, to).columns(h * query_dim(), (h + 1) * query_dim()),
                                      .k_nope = kv.rows(0, keys).columns(at, at + nope_),
                                      .k_rope = latents.rows(0, keys).columns(rank_, latent_width()),
                                      .v = kv.rows(0, keys).columns(at + nope_, at + nope_ + value_),
                                      .scale = scale_,
                                      .query_start = start + from,
                                      .key_start = block,
                                      .max = max.row(from) + h,
                                      .sum = sum.row(from) + h,
                                      .partial_stride = max.stride(),
                                      .out = heads.rows(from, to).columns(h * value_, (h + 1) * value_)},
                                     scratch.subspan(s.worker * scratch_each, scratch_each));
      }
    });
  }
  ctx.pool.parallel_for(rows, grain(heads_ * value_), [&](const Slice& s) {
    for (size_t r = s.begin; r < s.end; ++r)
      for (size_t h = 0; h < heads_; ++h)
        ctx.kernels.softmax_finish({max.row(r) + h, sum.row(r) + h, heads.row(r) + h * value_}, value_);
  });
}

void KimiMlaAttention::decode(ExecContext& ctx, const LatentKvPool& pool, std::span<const PageId> pages, size_t position,
                              MatView<const float> q, MatView<float> heads) const {
  Workspace::Frame frame(ctx.workspace);
  const size_t keys = position + 1, blocks = divide_up(keys, kMlaBlock);
  auto q_latent = frame.matrix(heads_, rank_);    // W_uk^T q_nope by head
  auto latent_out = frame.matrix(heads_, rank_);  // sum_s p_s c_s by head: the running softmax's numerator
  auto max = frame.matrix(1, heads_), sum = frame.matrix(1, heads_);
  auto wave_max = frame.matrix(kWave, heads_), wave_sum = frame.matrix(kWave, heads_);
  auto wave_out = frame.matrix(kWave * heads_, rank_);  // partial softmaxes, by block and head
  auto latents = frame.matrix(ctx.pool.size() * kMlaBlock, latent_width());
  const size_t scratch_each = mla_decode_scratch(kHeadGroup, latent_width());
  const std::span<float> scratch = frame.array<float>(ctx.pool.size() * scratch_each);
  const MatView<const float> q_heads(q.data(), heads_, query_dim());  // [heads, nope + rope]

  ctx.pool.parallel_for(heads_, grain(nope_ * rank_), [&](const Slice& s) {
    for (size_t h = s.begin; h < s.end; ++h) {
      ctx.kernels.matmul_transposed(key_rows(h), q_heads.rows(h, h + 1).columns(0, nope_), q_latent.rows(h, h + 1));
      max[0][h] = -std::numeric_limits<float>::infinity();
      sum[0][h] = 0.0f;
      std::ranges::fill(latent_out[h], 0.0f);
    }
  });

  const size_t groups = divide_up(heads_, kHeadGroup);
  for (size_t wave = 0; wave < blocks; wave += kWave) {
    const size_t in_wave = std::min(kWave, blocks - wave);
    ctx.pool.parallel_for(in_wave * groups, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) {
        const size_t b = i / groups, from = i % groups * kHeadGroup, to = std::min(from + kHeadGroup, heads_);
        const size_t block = (wave + b) * kMlaBlock, count = std::min(kMlaBlock, keys - block);
        const MatView<float> own = latents.rows(s.worker * kMlaBlock, s.worker * kMlaBlock + count);
        pool.read(latent_layer_, pages, block, own);
        ctx.kernels.mla_decode_block({.q_latent = q_latent.rows(from, to),
                                      .q_rope = q_heads.rows(from, to).columns(nope_, query_dim()),
                                      .latents = own,
                                      .scale = scale_,
                                      .max = wave_max.row(b) + from,
                                      .sum = wave_sum.row(b) + from,
                                      .out = wave_out.rows(b * heads_ + from, b * heads_ + to)},
                                     scratch.subspan(s.worker * scratch_each, scratch_each));
      }
    });
    ctx.pool.parallel_for(heads_, grain(in_wave * rank_), [&](const Slice& s) {
      for (size_t h = s.begin; h < s.end; ++h)
        for (size_t b = 0; b < in_wave; ++b)  // in order of position, whoever finished first
          ctx.kernels.softmax_merge({wave_max.row(b) + h, wave_sum.row(b) + h, wave_out.row(b * heads_ + h)},
                                    {max.row(0) + h, sum.row(0) + h, latent_out.row(h)}, rank_);
    });
  }

  const MatView<float> head_outputs(heads.data(), heads_, value_);
  ctx.pool.parallel_for(heads_, grain(value_ * rank_), [&](const Slice& s) {
    for (size_t h = s.begin; h < s.end; ++h) {
      ctx.kernels.softmax_finish({max.row(0) + h, sum.row(0) + h, latent_out.row(h)}, rank_);
      ctx.kernels.matmul(value_rows(h), latent_out.rows(h, h + 1), 0, value_, head_outputs.rows(h, h + 1));
    }
  });
}

size_t KimiMlaAttention::extend_bytes(size_t tokens, size_t threads) const {
  return floats(kMlaBlock * latent_width()) + floats(kMlaBlock * heads_ * (nope_ + value_)) + 2 * floats(tokens * heads_) +
         floats(threads * mla_extend_scratch(kQueryRows, query_dim()));
}

size_t KimiMlaAttention::decode_bytes(size_t threads) const {
  return 2 * floats(heads_ * rank_) + 2 * floats(heads_) + 2 * floats(kWave * heads_) + floats(kWave * heads_ * rank_) +
         floats(threads * kMlaBlock * latent_width()) + floats(threads * mla_decode_scratch(kHeadGroup, latent_width()));
}

size_t KimiMlaAttention::workspace_bytes(size_t tokens, size_t threads) const {
  return ActivationRows::workspace_bytes(tokens, hidden_) + floats(tokens * heads_ * query_dim()) +
         floats(tokens * latent_width()) + floats(tokens * heads_ * value_) +
         std::max(
             {ActivationRows::workspace_bytes(tokens, heads_ * value_), extend_bytes(tokens, threads), decode_bytes(threads)});
}

}  // namespace kilin

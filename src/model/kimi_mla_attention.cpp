#include "model/kimi_mla_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"

namespace kilin {

namespace {

constexpr size_t kQueryRows = 32;   // query rows of one head a tile (Extend)
constexpr size_t kKeyRows = 64;     // keys of one head that are decompressed in one go (Extend)
constexpr size_t kDecodeRows = 16;  // rows that share the loops (Decode)

size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

size_t floats(size_t n) { return Workspace::rounded(n * sizeof(float)); }

// Absorbed queries are inputs of a large product, and rounded as those are, to what the latents are of. With f32 nothing is.
bool rounds_to_bf16(const ExecContext& ctx, const LatentKvPool& pool) {
  return ctx.activations != ActivationType::f32 && pool.dimensions().type == KvType::bf16;
}

// A pool that was made for other layers has their latents where this one would write its own.
void validate_pool(const LatentKvPool::Dimensions& pool, size_t latent_layer, size_t latent_width) {
  if (latent_layer >= pool.layers || latent_width != pool.width)
    raise(ErrorCode::InvalidArgument, "the pool has latents of {} layers, {} wide; an MLA layer expects more than {}, {} wide",
          pool.layers, pool.width, latent_layer, latent_width);
}

// One row that generates: the past that it reads, in blocks that count on from those of the rows before it.
struct DecodeRow {
  std::span<const PageId> pages;
  size_t keys;
  size_t first_block, end_block;
};

// Rows [first, first + rows.size()) of the batch, all of sequences that generate.
void find_rows(const ForwardBatch& batch, size_t first, std::span<DecodeRow> rows) {
  size_t n = 0, blocks = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    while (batch.cu_seqlens[n + 1] <= first + i) ++n;
    const SequenceSpan& sequence = batch.sequences[n];
    const size_t keys = sequence.start + (first + i - batch.cu_seqlens[n]) + 1, end = blocks + divide_up(keys, kMlaBlock);
    rows[i] = {sequence.pages, keys, blocks, end};
    blocks = end;
  }
}

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
  batch.validate_latents(x.rows());
  validate_pool(batch.pools->latents.dimensions(), latent_layer_, latent_width());
  Workspace::Frame frame(ctx.workspace);
  const size_t tokens = x.rows();
  StageScope stage = ctx.stage(Stage::MlaProjections);
  const ActivationRows rows(ctx, frame, x);
  auto q = frame.matrix(tokens, heads_ * query_dim());  // [T, heads x (nope + rope)]; the rope channels are never rotated
  auto latent = frame.matrix(tokens, latent_width());   // [T, rank + rope] c | k_rope
  auto heads = frame.matrix(tokens, heads_ * value_);   // [T, heads x value]

  matmul(ctx, {q_proj_.product(rows, q), kv_a_proj_with_mqa_.product(rows, latent)});
  ctx.tap(Value::QProj, layer_, q);
  ctx.tap(Value::KvAProj, layer_, latent);
  const MatView<float> c = latent.columns(0, rank_);
  kv_a_layernorm_.apply(ctx, c, c);  // the latent only; k_rope has no norm
  ctx.tap(Value::KvALayernorm, layer_, c);
  show_queries(ctx, batch, q);

  stage.next(Stage::MlaAttention);
  count_attention(ctx, batch);
  for (size_t n = 0; n < batch.sequences.size(); ++n)
    batch.pools->latents.write(latent_layer_, batch.sequences[n].pages, batch.sequences[n].start,
                               latent.rows(batch.cu_seqlens[n], batch.cu_seqlens[n + 1]));
  if (wants_staged_mla(ctx, layer_))
    staged_mla(ctx, batch, parameters(), q, heads);
  else
    attend(ctx, batch, q, heads);
  ctx.tap_heads(Value::AttentionHeadOutputs, layer_, heads, heads_);
  stage.next(Stage::MlaOutput);
  o_proj_.apply(ctx, ActivationRows(ctx, frame, heads), out);
}

// Each sequence in its own mode.
void KimiMlaAttention::attend(ExecContext& ctx, const ForwardBatch& batch, MatView<const float> q, MatView<float> heads) const {
  const size_t sequences = batch.sequences.size();
  for (size_t n = 0; n < sequences;) {
    const size_t begin = batch.cu_seqlens[n];
    if (batch.sequences[n].mode != ForwardMode::Decode) {
      extend(ctx, batch, n, q.rows(begin, batch.cu_seqlens[n + 1]), heads.rows(begin, batch.cu_seqlens[n + 1]));
      ++n;
      continue;
    }
    while (n < sequences && batch.sequences[n].mode == ForwardMode::Decode) ++n;
    for (size_t row = begin, end = batch.cu_seqlens[n]; row < end; row += kDecodeRows)
      decode(ctx, batch, row, q.rows(row, std::min(row + kDecodeRows, end)), heads.rows(row, std::min(row + kDecodeRows, end)));
  }
}

MlaParameters KimiMlaAttention::parameters() const {
  return {.heads = heads_,
          .nope = nope_,
          .rope = rope_,
          .value = value_,
          .rank = rank_,
          .scale = scale_,
          .kv_b_proj = kv_b_proj_.view,
          .layer = layer_,
          .latent_layer = latent_layer_};
}

// By head, as [heads, S, nope + rope] of each sequence: the other side of the keys.
void KimiMlaAttention::show_queries(ExecContext& ctx, const ForwardBatch& batch, MatView<float> q) const {
  if (!ctx.wants(Value::AttentionQueries, layer_)) return;
  std::vector<TensorView> parts(batch.sequences.size());
  for (size_t n = 0; n < parts.size(); ++n) {
    const MatView<float> own = q.rows(batch.cu_seqlens[n], batch.cu_seqlens[n + 1]);
    if (own.rows() > 0)
      parts[n] = {own.data(), DType::f32, {heads_, own.rows(), query_dim()}, {query_dim(), own.stride(), 1, 0}};
  }
  ctx.taps->at_sequences({Value::AttentionQueries, layer_}, parts);
}

// Latents are written and read once, by a query and key: scores and the weighted sum, in the heads' own width or, absorbed, in
// the latents'. Absorbed, all rows of a batch need kv_b_proj but once; decompression is counted where it is done.
void KimiMlaAttention::count_attention(ExecContext& ctx, const ForwardBatch& batch) const {
  if (ctx.profile == nullptr) return;
  StageCost cost;
  uint64_t& absorbed = rounds_to_bf16(ctx, batch.pools->latents) ? cost.bf16_operations : cost.fp32_operations;
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
      absorbed += 2 * heads_ * pairs * (latent_width() + rank_);
      cost.fp32_operations += 2 * heads_ * rows * rank_ * (nope_ + value_);
      cost.weight_bytes = kv_b_proj_.view.bytes();
    }
  }
  ctx.profile->add(cost);
}

void KimiMlaAttention::extend(ExecContext& ctx, const ForwardBatch& batch, size_t n, MatView<const float> q,
                              MatView<float> heads) const {
  Workspace::Frame frame(ctx.workspace);
  const SequenceSpan& sequence = batch.sequences[n];
  const size_t rows = q.rows(), start = sequence.start, stop = start + rows, kv_width = nope_ + value_;
  if (rows == 0) return;
  auto latents = frame.matrix(kMlaBlock, latent_width());  // [S, rank + rope] of one block, read back from the pool
  // [heads, S, k_nope | v]: by head, because rows of all heads would stand a power of two apart and share a few lines of cache.
  auto kv = frame.matrix(heads_ * kMlaBlock, kv_width);
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
    const PackedMatrix& kv_b = kv_b_proj_.view;
    ctx.count({.weight_bytes = kv_b.bytes(), .fp32_operations = 2 * keys * kv_b.rows() * kv_b.cols()});
    const size_t key_tiles = divide_up(keys, kKeyRows);
    ctx.pool.parallel_for(key_tiles * heads_, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) {  // neighbours share their weights
        const size_t h = i / key_tiles, from = i % key_tiles * kKeyRows, to = std::min(from + kKeyRows, keys);
        ctx.kernels.matmul(kv_b.slice_rows(h * kv_width, (h + 1) * kv_width), latents.rows(from, to).columns(0, rank_), 0,
                           kv_width, kv.rows(h * kMlaBlock + from, h * kMlaBlock + to));
      }
    });

    const size_t first = block > start ? block - start : 0;  // rows before it see nothing of this block
    const size_t tiles = divide_up(rows - first, kQueryRows);
    ctx.pool.parallel_for(tiles * heads_, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) {
        const size_t h = i / tiles, from = first + i % tiles * kQueryRows, to = std::min(from + kQueryRows, rows);
        const MatView<const float> own = kv.rows(h * kMlaBlock, h * kMlaBlock + keys);
        ctx.kernels.mla_extend_block({.q = q.rows(from, to).columns(h * query_dim(), (h + 1) * query_dim()),
                                      .k_nope = own.columns(0, nope_),
                                      .k_rope = latents.rows(0, keys).columns(rank_, latent_width()),
                                      .v = own.columns(nope_, kv_width),
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

void KimiMlaAttention::decode(ExecContext& ctx, const ForwardBatch& batch, size_t first, MatView<const float> q,
                              MatView<float> heads) const {
  Workspace::Frame frame(ctx.workspace);
  const size_t rows = q.rows(), width = heads_ * rank_;
  auto q_latent = frame.matrix(rows, width);    // W_uk^T q_nope by head
  auto latent_out = frame.matrix(rows, width);  // sum_s p_s c_s by head: the running softmax's numerator
  auto max = frame.matrix(rows, heads_), sum = frame.matrix(rows, heads_);
  auto wave_max = frame.matrix(kWave, heads_), wave_sum = frame.matrix(kWave, heads_);
  auto wave_out = frame.matrix(heads_, wave_width());  // partial softmaxes, by head and block: each head merges its own
  const size_t scratch_each = mla_decode_scratch(heads_, latent_width());
  const std::span<float> scratch = frame.array<float>(ctx.pool.size() * scratch_each);
  DecodeRow row_array[kDecodeRows];
  const std::span<DecodeRow> decode_rows(row_array, rows);
  find_rows(batch, first, decode_rows);
  const auto head_of = [&](auto matrix, size_t h, size_t head_width) {
    return matrix.columns(h * head_width, (h + 1) * head_width);
  };

  ctx.pool.parallel_for(heads_, grain(rows * nope_ * rank_), [&](const Slice& s) {
    for (size_t h = s.begin; h < s.end; ++h) {
      ctx.kernels.matmul_transposed(key_rows(h), head_of(q, h, query_dim()).columns(0, nope_), head_of(q_latent, h, rank_));
      for (size_t r = 0; r < rows; ++r) {
        max[r][h] = -std::numeric_limits<float>::infinity();
        sum[r][h] = 0.0f;
        std::ranges::fill(head_of(latent_out, h, rank_)[r], 0.0f);
      }
    }
  });

  const LatentKvPool& pool = batch.pools->latents;
  const auto decode_block = rounds_to_bf16(ctx, pool) ? ctx.kernels.mla_decode_block_bf16 : ctx.kernels.mla_decode_block;
  const size_t blocks = decode_rows.back().end_block;
  for (size_t wave = 0; wave < blocks; wave += kWave) {
    const size_t wave_end = std::min(wave + kWave, blocks);
    ctx.pool.parallel_for(wave_end - wave, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) {
        size_t r = 0;
        while (decode_rows[r].end_block <= wave + i) ++r;
        const DecodeRow& row = decode_rows[r];
        const size_t block = (wave + i - row.first_block) * kMlaBlock, count = std::min(kMlaBlock, row.keys - block);
        const auto page = [&](size_t p) { return pool.stored_rows(latent_layer_, row.pages[p]); };
        const std::byte* pages[kMlaBlock / kMlaPage];
        for (size_t p = 0; p * kMlaPage < count; ++p) pages[p] = page(block / kMlaPage + p);
        const MatView<const float> query(q.row(r), heads_, query_dim());  // [heads, nope + rope]
        decode_block({.q_latent = {q_latent.row(r), heads_, rank_},
                      .q_rope = query.columns(nope_, query_dim()),
                      .latents = {pool.dimensions().type, {pages, divide_up(count, kMlaPage)}, count},
                      .scale = scale_,
                      .upcoming = block + kMlaBlock < row.keys ? page((block + kMlaBlock) / kMlaPage) : nullptr,
                      .max = wave_max.row(i),
                      .sum = wave_sum.row(i),
                      .out = wave_out.columns(i * rank_, (i + 1) * rank_)},
                     scratch.subspan(s.worker * scratch_each, scratch_each));
      }
    });
    ctx.pool.parallel_for(heads_, grain(rows * value_ * rank_), [&](const Slice& s) {
      for (size_t h = s.begin; h < s.end; ++h) {
        for (size_t r = 0; r < rows; ++r)  // in order of position, whoever finished first
          for (size_t b = std::max(wave, decode_rows[r].first_block); b < std::min(wave_end, decode_rows[r].end_block); ++b)
            ctx.kernels.softmax_merge(
                {wave_max.row(b - wave) + h, wave_sum.row(b - wave) + h, wave_out.row(h) + (b - wave) * rank_},
                {max.row(r) + h, sum.row(r) + h, latent_out.row(r) + h * rank_}, rank_);
        if (wave_end < blocks) continue;
        for (size_t r = 0; r < rows; ++r)
          ctx.kernels.softmax_finish({max.row(r) + h, sum.row(r) + h, latent_out.row(r) + h * rank_}, rank_);
        ctx.kernels.matmul(value_rows(h), head_of(latent_out, h, rank_), 0, value_, head_of(heads, h, value_));
      }
    });
  }
}

size_t KimiMlaAttention::extend_bytes(size_t tokens, size_t threads) const {
  return floats(kMlaBlock * latent_width()) + floats(kMlaBlock * heads_ * (nope_ + value_)) + 2 * floats(tokens * heads_) +
         floats(threads * mla_extend_scratch(kQueryRows, query_dim()));
}

size_t KimiMlaAttention::decode_bytes(size_t tokens, size_t threads) const {
  const size_t rows = std::min(tokens, kDecodeRows);
  return 2 * floats(rows * heads_ * rank_) + 2 * floats(rows * heads_) + 2 * floats(kWave * heads_) +
         floats(heads_ * wave_width()) + floats(threads * mla_decode_scratch(heads_, latent_width()));
}

size_t KimiMlaAttention::workspace_bytes(size_t tokens, size_t threads) const {
  return ActivationRows::workspace_bytes(tokens, hidden_) + floats(tokens * heads_ * query_dim()) +
         floats(tokens * latent_width()) + floats(tokens * heads_ * value_) +
         std::max({ActivationRows::workspace_bytes(tokens, heads_ * value_), extend_bytes(tokens, threads),
                   decode_bytes(tokens, threads)});
}

}  // namespace kilin

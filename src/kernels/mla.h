// Attention of a Multi-head Latent Attention layer without rotary embeddings, over fixed blocks of 512 tokens of absolute
// position whose partial softmaxes are merged in order: a row's result does not depend on the batch, the threads or where the
// prompt was cut.
#pragma once

#include <cstddef>
#include <span>

#include "core/mat_view.h"
#include "kernels/latent_row.h"

namespace kilin {

/// Blocks of the past: [512 b, 512 b + 512) of absolute position.
inline constexpr size_t kMlaBlock = 512;

/// Tokens in one page of latents, from absolute position 0.
inline constexpr size_t kMlaPage = 64;

/// A softmax over a part of the keys, not yet normalised: max = max_s x_s; sum = sum_s e^(x_s - max); out = sum_s e^(x_s - max)
/// v_s. The empty one is max = -inf, sum = 0, out = 0.
struct SoftmaxPartial {
  float* max;
  float* sum;
  float* out;  ///< n values; n is the caller's
};

/// One head, some query rows of one sequence, one block of decompressed keys and values (Extend). For each row it forms the
/// block's partial softmax over the keys up to the row's own position, in order of the keys, then merges it into the row's
/// running partial:
///   score[r, s] = scale * (q_nope[r] . k_nope[s] + q_rope[r] . k_rope[s])    one chain over nope, then rope
struct MlaExtendBlock {
  MatView<const float> q;       ///< [R, nope + rope] of this head
  MatView<const float> k_nope;  ///< [S, nope]; S <= kMlaBlock
  MatView<const float> k_rope;  ///< [S, rope], shared by the heads
  MatView<const float> v;       ///< [S, V]
  float scale;                  ///< (nope + rope)^-0.5
  size_t query_start;           ///< absolute position of row 0
  size_t key_start;             ///< absolute position of key 0: a multiple of kMlaBlock
  float* max;                   ///< [R] running, stride `partial_stride`
  float* sum;                   ///< [R] running, the same stride
  size_t partial_stride;
  MatView<float> out;  ///< [R, V] running, not normalised
};

/// Stored latents of up to kMlaBlock keys: c after its norm, then the unrotated rope channels.
struct LatentPages {
  KvType type;
  std::span<const std::byte* const> pages;  ///< rows of kMlaPage keys each, one after the other; see kernels/latent_row.h
  size_t keys;                              ///< 1 .. kMlaBlock
};

/// All heads of one query row, one block of latents (Decode, absorbed). Writes one partial softmax per head, not merged.
///   score[h, s] = scale * (q_latent[h] . c[s] + q_rope[h] . r[s]);   out[h] = sum_s e^(score - max) c[s]
struct MlaDecodeBlock {
  MatView<const float> q_latent;  ///< [H, R]: W_uk^T q_nope by head
  MatView<const float> q_rope;    ///< [H, rope]
  LatentPages latents;            ///< of R + rope values
  float scale;
  const std::byte* upcoming;  ///< the page that will probably be read next, to prefetch; or nullptr
  float* max;                 ///< [H]
  float* sum;                 ///< [H]
  MatView<float> out;         ///< [H, R]
};

/// mla_decode_block_bf16 is the same over latents of bf16, and may round queries and exponentials to bf16 before it multiplies
/// them. If it does, each result is one chain over pairs, as in matmul_bf16 (f = fma(x[i], y[i], fma(x[i + 1], y[i + 1], f))
/// for i = 0, 2, ...): pairs of channels for a score, of keys for a sum. Scale, maximum, e^x and `sum` are fp32; `sum` adds the
/// rounded exponentials. A set without instructions for bf16 rounds nothing.

/// Floats of scratch for one call of at most this many rows or heads. key_dim is nope + rope, latent_dim is R + rope.
size_t mla_extend_scratch(size_t rows, size_t key_dim);
size_t mla_decode_scratch(size_t heads, size_t latent_dim);

}  // namespace kilin

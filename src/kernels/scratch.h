// The layout of scratch memory that kernels and their callers must agree on.
#pragma once

#include "kernels/kda.h"
#include "kernels/mla.h"

namespace kilin {

/// MLA puts at most this many query rows or heads side by side in the lanes of its vectors.
inline constexpr size_t kLanes = 32;

/// Tokens whose decays fused_recurrent_kda keeps at once.
inline constexpr size_t kRecurrentTokens = 16;

/// Rows of KDA's sub-blocks, within which decays are computed token by token.
inline constexpr size_t kKdaSubBlock = 16;

/// Tokens whose keys are added to their sub-block together.
inline constexpr size_t kKdaJoinedTokens = 4;

/// Channels in whole panels.
constexpr size_t in_panels(size_t value_dim) { return (value_dim + kKdaPanel - 1) / kKdaPanel * kKdaPanel; }

/// The layout of chunk_kda's scratch, in floats. K is the key dim, V the value dim.
struct ChunkScratch {
  constexpr ChunkScratch(size_t K, size_t V)
      : q(0),
        k(q + kKdaChunk * K),
        v(k + kKdaChunk * K),
        rest(v + kKdaChunk * in_panels(V)),
        a(rest + kKdaChunk * K),
        p(a + kKdaChunk * kKdaChunk),
        corrected(p + kKdaChunk * kKdaChunk),
        decay(corrected + kKdaChunk * 2 * kKdaPanel),
        prefix(decay + kKdaJoinedTokens * K),
        total(prefix + K),
        floats(total + K) {}
  size_t q;          // [64, K] q_i times the decay from the chunk's start to i
  size_t k;          // [64, K] k_i likewise
  size_t v;          // [64, V in whole panels] v_i, copied: rows of the wide matrix would evict each other from the caches
  size_t rest;       // [4][K][16] k_j times the decay from j to the last token read so far, rows in lanes
  size_t a;          // [64, 64] -beta_i k_i . (decayed k_j)
  size_t p;          // [64, 64] q_i . (decayed k_j)
  size_t corrected;  // [64, 32] v' of the panels that are computed at once, two at most
  size_t decay;      // [4, K] exp(g) of the tokens that are added together
  size_t prefix;     // [K] running product of exp(g) in the sub-block
  size_t total;      // [K] and in the chunk before it
  size_t floats;
};

/// The layout of mla_extend_block's scratch, in floats, for rows side by side in `lanes` lanes; `key_dim` is nope + rope.
struct ExtendScratch {
  constexpr explicit ExtendScratch(size_t key_dim, size_t lanes = kLanes)
      : queries(0), scores(queries + key_dim * lanes), floats(scores + kMlaBlock * lanes) {}
  size_t queries;  // [key_dim][lanes]
  size_t scores;   // [512][lanes]
  size_t floats;
};

/// The layout of mla_decode_block's scratch, in floats; `width` is rank + rope.
struct DecodeScratch {
  constexpr DecodeScratch(size_t heads, size_t width)
      : queries(0),
        max(queries + in_lanes(heads) * width),
        sum(max + in_lanes(heads)),
        scores(sum + in_lanes(heads)),
        latents(scores + kMlaPage * kLanes),
        floats(latents + kMlaPage * width) {}
  size_t queries;  // [width][lanes] a group of heads
  size_t max;      // [heads] of the pages that were read, and
  size_t sum;      // [heads]
  size_t scores;   // [64][lanes] of one group
  size_t latents;  // [64, width] one page as fp32
  size_t floats;

 private:
  static constexpr size_t in_lanes(size_t heads) { return (heads + kLanes - 1) / kLanes * kLanes; }
};

/// The layout of mla_decode_block_bf16's scratch for one group of heads, in floats; `width` is rank + rope.
struct PairScratch {
  constexpr explicit PairScratch(size_t width)
      : queries(0),
        rows(queries + (width + 1) / 2 * kLanes),
        scores(rows + (width + 1) / 2 * kLanes),
        floats(scores + kMlaBlock * kLanes) {}
  size_t queries;  // [pairs of channels][lanes] of bf16
  size_t rows;     // [lanes][pairs] the same before they went to their lanes
  size_t scores;   // [512][lanes]
  size_t floats;
};

}  // namespace kilin

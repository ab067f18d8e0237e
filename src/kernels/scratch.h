// The layout of scratch memory that kernels and their callers must agree on.
#pragma once

#include "kernels/kda.h"
#include "kernels/mla.h"

namespace kilin {

/// MLA puts this many query rows or heads side by side in the lanes of its vectors.
inline constexpr size_t kLanes = 32;

/// Tokens whose decays fused_recurrent_kda keeps at once.
inline constexpr size_t kRecurrentTokens = 16;

/// Rows of KDA's sub-blocks, within which decays are formed token by token.
inline constexpr size_t kKdaSubBlock = 16;

/// Where chunk_kda keeps what, in floats. K is the key dim.
struct ChunkScratch {
  explicit constexpr ChunkScratch(size_t K)
      : q(0),
        k(q + kKdaChunk * K),
        rest(k + kKdaChunk * K),
        a(rest + kKdaChunk * K),
        p(a + kKdaChunk * kKdaChunk),
        v(p + kKdaChunk * kKdaChunk),
        decay(v + kKdaChunk * kKdaPanel),
        prefix(decay + K),
        total(prefix + K),
        floats(total + K) {}
  size_t q;       // [64, K] q_i times the decay from the chunk's start to i
  size_t k;       // [64, K] k_i likewise
  size_t rest;    // [4][K][16] k_j times the decay from j to the end of what was read so far, rows in lanes
  size_t a;       // [64, 64] -beta_i k_i . (decayed k_j)
  size_t p;       // [64, 64] q_i . (decayed k_j)
  size_t v;       // [64, 16] v' of one panel
  size_t decay;   // [K] exp(g) of one token
  size_t prefix;  // [K] its running product in the sub-block
  size_t total;   // [K] and in the chunk before it
  size_t floats;
};

}  // namespace kilin

// How much scratch the kernels need. The layouts are those of generic/*.inl; the naive forms need at most a row of scores and a
// latent.
#include "kernels/scratch.h"

#include <algorithm>

namespace kilin {

size_t chunk_kda_scratch(size_t key_dim, size_t value_dim) { return ChunkScratch(key_dim, value_dim).floats; }
size_t fused_recurrent_kda_scratch(size_t key_dim, size_t) { return kRecurrentTokens * key_dim; }

size_t mla_extend_scratch(size_t, size_t key_dim) { return ExtendScratch(key_dim).floats; }
size_t mla_decode_scratch(size_t heads, size_t latent_dim) {
  return std::max(DecodeScratch(heads, latent_dim).floats, PairScratch(latent_dim).floats);
}

}  // namespace kilin

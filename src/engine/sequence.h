// One conversation's memory: its state, its latents, and the tokens that made them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/memory_pools.h"

namespace kilin {

/// Move-only. Requests take it over and give it back, so that a next turn goes on where the last one ended. It may be destroyed
/// on any thread, and after its engine. One thread at a time uses it.
struct Sequence {
  std::shared_ptr<MemoryPools> pools;  ///< whose memory it is
  StateHandle state = {};              ///< none before its first step
  PageTable pages = {};
  std::vector<int32_t> ids = {};  ///< tokens that were fed, in order: state and latents are theirs

  size_t tokens() const { return ids.size(); }
};

/// Takes what `sequence` needs to hold `tokens` tokens. @throws ResourceExhausted, bad_alloc: it holds what it held before
/// then, but for a slot
inline void take_memory(Sequence& sequence, size_t tokens) {
  if (!sequence.state.valid()) {
    sequence.state = sequence.pools->states.acquire();
    sequence.pages = PageTable(sequence.pools->latents);
  }
  sequence.pages.grow(tokens);
}

}  // namespace kilin

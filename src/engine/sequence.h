// One conversation's memory: its state, its latents, and the tokens that made them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/memory_pools.h"

namespace kilin {

/// Move-only. Requests take it over and give it back, so that a next turn goes on where the last one ended. It may outlive its
/// engine: it keeps the pools alive.
struct Sequence {
  std::shared_ptr<MemoryPools> pools;  ///< first, so that it goes last: state and pages are its
  StateHandle state;
  PageTable pages;
  std::vector<int32_t> ids;  ///< tokens that were fed, in order: state and latents are theirs

  size_t tokens() const { return ids.size(); }
};

}  // namespace kilin

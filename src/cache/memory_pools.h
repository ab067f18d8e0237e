// Both memories of a runner together.
#pragma once

#include "cache/latent_kv_pool.h"
#include "cache/recurrent_state_pool.h"

namespace kilin {

struct MemoryPools {
  RecurrentStatePool states;
  LatentKvPool latents;
};

}  // namespace kilin

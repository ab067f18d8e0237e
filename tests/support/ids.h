// Token ids for tests that need any.
#pragma once

#include <cstdint>
#include <vector>

#include "core/random.h"

namespace kilin::testing {

/// `n` ids, the same for the same seed. They stay below 3840 unless told otherwise: models/tiny's words, not its special
/// tokens.
inline std::vector<int32_t> some_ids(size_t n, uint64_t seed, size_t vocab = 3840) {
  std::vector<int32_t> ids(n);
  for (size_t i = 0; i < n; ++i) ids[i] = static_cast<int32_t>(random_bits(seed, i) % vocab);
  return ids;
}

}  // namespace kilin::testing

#include "core/digest.h"

#define XXH_INLINE_ALL  // nothing to link, for us or for whoever uses the library
#include <xxhash.h>

namespace kilin {

uint64_t digest_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace kilin

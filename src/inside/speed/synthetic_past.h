// A long past without the hours that it takes to read it: for measuring what depth costs, and for nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/sequence.h"

namespace kilin {

/// Makes `sequence` as long as if it had read `tokens` more tokens: latents are noise in [-1, 1), about as large as normed
/// ones, and ids are random. The KDA states, whose size does not depend on the length, stay as they are. Every byte has its
/// place and every value is finite, so that a step costs what it costs after a true prompt; what it says is nonsense.
/// @throws ResourceExhausted if the pool has no pages for them; the sequence is as it was then
void lengthen_with_noise(Sequence& sequence, size_t tokens, size_t vocab_size, uint64_t seed);

}  // namespace kilin

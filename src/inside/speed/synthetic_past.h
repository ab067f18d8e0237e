// Makes a long past without the hours that reading one takes. Only for measuring the cost of depth.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/sequence.h"

namespace kilin {

/// Makes `sequence` as long as if it had read `tokens` more tokens: latents are noise in [-1, 1), about as large as normed
/// ones, and ids are random. The KDA states, whose size does not depend on the length, stay as they are. All memory is filled
/// and every value is finite, so that a step costs as much as after a real prompt; its output is nonsense.
/// @throws ResourceExhausted if the pool lacks pages for them; the sequence is then unchanged
void lengthen_with_noise(Sequence& sequence, size_t tokens, size_t vocab_size, uint64_t seed);

}  // namespace kilin

// The best few tokens of a row of logits, and the rank of one token among all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "inside/lens/lens.h"
#include "kernels/kernel_table.h"

namespace kilin {

/// Fills `best` with the most probable tokens of a row of logits; of equal ones the lower id comes first.
/// @param probabilities scratch, as long as the row
/// @param actual the token that really comes next, if any
/// @pre best.size() <= logits.size()
/// @returns rank and probability of that token, rank 0 if there is none; nothing if no logit is a number
std::optional<TrueToken> read_guesses(const KernelTable& kernels, std::span<const float> logits, std::span<float> probabilities,
                                      std::optional<int32_t> actual, std::span<Guess> best);

}  // namespace kilin

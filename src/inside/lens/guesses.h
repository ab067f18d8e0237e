// The best few of a row of logits, and where one token stands among all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "inside/lens/lens.h"
#include "kernels/kernel_table.h"

namespace kilin {

/// Fills `best` with the most probable tokens of a row of logits, of equal ones the lower id first.
/// @param probabilities scratch, as long as the row
/// @param actual the token that does come next, if one does
/// @pre best.size() <= logits.size()
/// @returns how that one fares, rank 0 without one; nothing if no logit is a number
std::optional<TrueToken> read_guesses(const KernelTable& kernels, std::span<const float> logits, std::span<float> probabilities,
                                      std::optional<int32_t> actual, std::span<Guess> best);

}  // namespace kilin

// Tokens of a benchmark's rows beside those that were asked for.
#pragma once

#include "inside/speed/bench.h"

namespace kilin {

inline constexpr size_t kWarmUpSteps = 2;     // of generation, before the clock runs
inline constexpr size_t kWarmUpPrompt = 128;  // before the first row
inline constexpr size_t kBatchPrompt = 16;    // of each sequence of a batch
inline constexpr size_t kNoisePrompt = 64;    // before noise: so that states hold something

/// Of a sequence that generates: an id to begin with, and those that are drawn, the last of which is not fed.
size_t generated_tokens(const BenchPlan& plan);

}  // namespace kilin

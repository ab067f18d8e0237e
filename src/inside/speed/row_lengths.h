// Tokens that a benchmark's rows need besides those asked for.
#pragma once

#include "inside/speed/bench.h"

namespace kilin {

inline constexpr size_t kWarmUpSteps = 2;     // of generation, before the clock runs
inline constexpr size_t kWarmUpPrompt = 128;  // before the first row
inline constexpr size_t kBatchPrompt = 16;    // of each sequence of a batch
inline constexpr size_t kNoisePrompt = 64;    // before noise, so that states are not empty

/// Of a sequence that generates: one id to start with, then the drawn ones, of which the last is not fed.
size_t generated_tokens(const BenchPlan& plan);

}  // namespace kilin

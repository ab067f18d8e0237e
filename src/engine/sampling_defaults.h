// How a model is sampled where nobody says otherwise: the same for every front end.
#pragma once

#include <filesystem>

#include "config/generation_config.h"
#include "engine/sampler.h"

namespace kilin {

/// Where a checkpoint names no temperature.
inline constexpr double kDefaultTemperature = 0.6;

/// What the checkpoint's generation_config.json asks for; `do_sample: false` takes the most probable token, whatever the rest
/// says. The seed is 0. @param file names `config` in errors. @throws Corrupt for values that can't be meant
SamplingParams default_sampling(const GenerationConfig& config, const std::filesystem::path& file);

}  // namespace kilin

#include "engine/sampling_defaults.h"

#include "core/error.h"

namespace kilin {

SamplingParams default_sampling(const GenerationConfig& config, const std::filesystem::path& file) {
  SamplingParams params;
  params.temperature = config.temperature.value_or(kDefaultTemperature);
  params.top_k = config.top_k.value_or(params.top_k);
  params.top_p = config.top_p.value_or(params.top_p);
  params.min_p = config.min_p.value_or(params.min_p);
  params.repetition_penalty = config.repetition_penalty.value_or(params.repetition_penalty);
  try {
    params.validate();
  } catch (const Error& error) {
    raise(ErrorCode::Corrupt, "{}: {}", file.string(), error.what());
  }
  if (config.do_sample == false) params.temperature = 0;
  return params;
}

}  // namespace kilin

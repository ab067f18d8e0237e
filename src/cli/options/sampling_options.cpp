#include "cli/options/sampling_options.h"

#include <CLI/App.hpp>
#include <random>

#include "cli/options/options.h"
#include "engine/sampling_defaults.h"

namespace kilin::cli {

namespace {

constexpr SamplingParams::Names kOptionNames = {
    .repetition_penalty = "--repetition-penalty", .temperature = "--temp", .top_p = "--top-p", .min_p = "--min-p"};

void overlay(const SamplingFlags& flags, SamplingParams& params) {
  params.temperature = flags.temperature.value_or(params.temperature);
  params.top_p = flags.top_p.value_or(params.top_p);
  params.min_p = flags.min_p.value_or(params.min_p);
  params.repetition_penalty = flags.repetition_penalty.value_or(params.repetition_penalty);
  if (flags.top_k) params.top_k = *flags.top_k;
}

}  // namespace

void SamplingFlags::add_to(CLI::App& app) {
  constexpr const char* group = "Sampling (defaults: the model's generation_config.json)";
  add_number(app, "--temp", temperature, "Temperature; 0 takes the most probable token, as do_sample: false of that file does")
      ->group(group);
  add_unsigned(app, "--top-k", top_k, "Draw from the N most probable tokens; 0: from all")->group(group);
  add_number(app, "--top-p", top_p, "Draw from the fewest tokens that reach this probability together")->group(group);
  add_number(app, "--min-p", min_p, "Leave out tokens below this share of the most probable one")->group(group);
  add_number(app, "--repetition-penalty", repetition_penalty, "Make tokens that occurred less probable; 1: off")->group(group);
  add_unsigned(app, "--seed", seed, "Seed of chance; the same one gives the same text (default: a random one)")->group(group);
}

void SamplingFlags::validate() const {
  SamplingParams params;
  overlay(*this, params);
  params.validate(kOptionNames);
}

Need SamplingFlags::need_of_file() const {
  const bool says_all = temperature && top_k && top_p && min_p && repetition_penalty;
  return temperature == 0.0 || says_all ? Need::Optional : Need::Required;
}

SamplingParams SamplingFlags::params(const GenerationConfig& config, const std::filesystem::path& file) const {
  SamplingParams params = default_sampling(config, file);
  overlay(*this, params);
  params.validate(kOptionNames);
  if (seed)
    params.seed = *seed;
  else if (params.temperature > 0)
    params.seed = std::random_device()();  // 32 bits: short enough to be typed again
  return params;
}

}  // namespace kilin::cli

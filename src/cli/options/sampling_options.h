// How the next token is drawn: from the command line, else from the checkpoint's generation_config.json, else our defaults.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "config/generation_config.h"
#include "engine/sampler.h"
#include "loading/loaded_model.h"

namespace CLI {
class App;
}

namespace kilin::cli {

struct SamplingFlags {
  std::optional<double> temperature = {};
  std::optional<uint64_t> top_k = {};
  std::optional<double> top_p = {};
  std::optional<double> min_p = {};
  std::optional<double> repetition_penalty = {};
  std::optional<uint64_t> seed = {};

  void add_to(CLI::App& app);

  /// Checks what was given, before any model is loaded. @throws InvalidArgument
  void validate() const;

  /// Whether generation_config.json has a say. Where nothing is drawn it has none.
  Need need_of_file() const;

  /// Without --seed, and with anything to draw, the seed is a random one.
  /// @param file names `config` in errors. @throws Corrupt for values of `config` that can't be meant; InvalidArgument
  SamplingParams params(const GenerationConfig& config, const std::filesystem::path& file) const;
};

}  // namespace kilin::cli

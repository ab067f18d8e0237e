// generation_config.json: how the checkpoint's makers want it sampled, and where an answer ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kilin {

/// What the file says; nothing where it says nothing.
struct GenerationConfig {
  std::vector<int32_t> eos_token_ids;
  std::optional<bool> do_sample;  ///< false: the most probable token is taken, whatever the rest says
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<size_t> top_k;
  std::optional<double> repetition_penalty;

  /// Of a model's folder; empty if the file is not there. @throws Io; Corrupt for values of a wrong type, and for token ids
  /// beyond the vocabulary
  static GenerationConfig read(const std::filesystem::path& folder, size_t vocab_size);
  static GenerationConfig parse(std::string_view text, const std::string& source, size_t vocab_size);
};

}  // namespace kilin

// generation_config.json: how the checkpoint's makers want tokens sampled, and which tokens end an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kilin {

/// The file's values; those that it does not give are empty.
struct GenerationConfig {
  std::vector<int32_t> eos_token_ids;
  std::optional<bool> do_sample;  ///< false: take the most probable token, whatever the other values are
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<size_t> top_k;
  std::optional<double> repetition_penalty;

  /// Reads the file of a model's folder; all values are empty if there is no file. @throws Io; Corrupt for values of a wrong
  /// type, and for token ids beyond the vocabulary
  static GenerationConfig read(const std::filesystem::path& folder, size_t vocab_size);
  static GenerationConfig parse(std::string_view text, const std::string& source, size_t vocab_size);
};

}  // namespace kilin

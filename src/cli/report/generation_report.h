// What a finished generation is reported as: one JSON object, or one line of figures.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/events.h"

namespace kilin::cli {

struct GenerationReport {
  std::span<const int32_t> prompt_ids;
  const Answer& answer;
  uint64_t seed;
  bool has_text;  ///< false without a tokenizer: the text is null
  double load_s;
  uint64_t planned_bytes;  ///< of pools and workspace, without the weights

  /// {"prompt_ids", "ids", "text", "finish_reason", "seed", "timings", "planned_memory_bytes", "peak_memory_bytes"}, without a
  /// newline
  std::string json() const;

  /// "prompt 9 tokens, 120.3 tokens/s; generated 48 tokens, 61.2 tokens/s; peak memory 41 MiB"
  std::string figures() const;
};

/// "48 tokens, 61.2 tokens/s"; without a rate for a single token, of which there is nothing to tell.
/// @param measured the tokens that took the seconds
std::string tokens_and_rate(size_t tokens, size_t measured, double seconds);

/// 0 where nothing was measured.
double per_second(size_t tokens, double seconds);

}  // namespace kilin::cli

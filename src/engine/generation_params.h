// What a request asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampler.h"

namespace kilin {

struct GenerationParams {
  SamplingParams sampling = {};
  size_t max_new_tokens = 128;  ///< 0 only reads the prompt, for its logits
  /// End the answer; the id is part of it, its text is not. Unset: LoadedModel::stop_ids. Empty: none does
  std::optional<std::vector<int32_t>> stop_ids = {};
  std::vector<std::string> stop_strings = {};  ///< end the answer before them; need a tokenizer
  bool keep_sequence = false;                  ///< keep its memory after it ended, for take_sequence(); else it is free at once
};

}  // namespace kilin

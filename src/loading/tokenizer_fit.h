// Whether a tokenizer is that of a model.
#pragma once

#include "config/model_config.h"
#include "text/tokenizer.h"

namespace kilin {

/// A tiktoken.model that was cut at the end of a line is a valid one with fewer tokens: only what stands beside it tells.
/// @throws Unsupported as Tokenizer::require_vocabulary; Corrupt where the configuration names tokens that the tokenizer lacks,
/// or has under other ids
void require_fit(const Tokenizer& tokenizer, const ModelConfig& config);

}  // namespace kilin

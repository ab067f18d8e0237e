// The keys of a GGUF file that describe a model and its vocabulary, as llama.cpp reads them: the inverse of gguf_config and
// gguf_tokenizer.
#pragma once

#include <optional>

#include "checkpoint/gguf_writer.h"
#include "config/model_config.h"
#include "text/tokenizer.h"
#include "weights/quant_mix.h"

namespace kilin {

/// The configuration, ids of special tokens among it. @param type nothing for bf16. @throws Unsupported for a model that these
/// keys can't describe
GgufKeys gguf_keys(const ModelConfig& config, const std::string& name, std::optional<QuantType> type);

/// tokenizer.ggml.*: tokens by id up to vocab_size, their kinds, and the merges that make each of two others.
void append_gguf_vocabulary(const Tokenizer& tokenizer, const ModelConfig& config, GgufKeys& keys);

}  // namespace kilin

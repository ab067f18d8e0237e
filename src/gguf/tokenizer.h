// Kimi's tokeniser out of the vocabulary that a GGUF file carries.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/gguf_metadata.h"
#include "text/tokenizer.h"

namespace kilin {

/// Rebuilds it from tokenizer.ggml.tokens, token_type and merges: GPT-2's stand-ins become bytes again, ids are ranks, and what
/// is no normal token is special. Nothing if the file holds no tokeniser: ids can still be used.
/// @param source names the file in errors. @throws Unsupported for another kind of tokeniser, and for merges in another order
/// than the ids, which would make other tokens of a text; Corrupt
std::optional<Tokenizer> read_gguf_tokenizer(const GgufMetadata& metadata, const std::string& source);

}  // namespace kilin

// Checks of a model's tokenizer and chat format.
#pragma once

#include <memory>

#include "inside/verify/check.h"
#include "loading/model_files.h"
#include "text/tokenizer.h"

namespace kilin {

/// Whether a tokenizer has the size and the special tokens of the published Kimi-Linear models.
bool has_published_vocabulary(const Tokenizer& tokenizer);

/// The question of the one chat whose published ids are known.
inline constexpr std::string_view kAnchorQuestion = "Tell me about the french revolution.";

/// The ids of a chat in which `question` was asked. @throws Unsupported if the tokenizer lacks the chat's tokens
std::vector<int32_t> chat_prompt(const Tokenizer& tokenizer, std::string_view question);

/// "tokenizer": it loads, the embedding has a row for each token, and decoding gives the encoded text back. "chat format": the
/// checkpoint's own template is in the format that Kilin writes. "tokenizer anchor": a chat gets its published ids.
/// @returns the tokenizer, null if there is none or it failed
std::shared_ptr<const Tokenizer> check_tokenizer(CheckReporter& reporter, const ModelFiles& files, const ModelConfig& config);

}  // namespace kilin

// Checks of a model's tokenizer and chat format.
#pragma once

#include <memory>

#include "inside/verify/check.h"
#include "loading/model_files.h"
#include "text/tokenizer.h"

namespace kilin {

/// Whether a tokenizer is that of the published Kimi-Linear models, as far as its size and special tokens tell.
bool has_published_vocabulary(const Tokenizer& tokenizer);

/// The chat of which the published ids are known: one question.
inline constexpr std::string_view kAnchorQuestion = "Tell me about the french revolution.";

/// The ids of a chat in which `question` was asked. @throws Unsupported if the tokenizer lacks the chat's tokens
std::vector<int32_t> chat_prompt(const Tokenizer& tokenizer, std::string_view question);

/// "tokenizer": it loads, has a row of the embedding for each token, and gives back the text that it is given. "chat format":
/// the checkpoint's own template is the one that Kilin writes. "tokenizer anchor": the published ids of a chat.
/// @returns the tokenizer, null if there is none or it failed
std::shared_ptr<const Tokenizer> check_tokenizer(CheckReporter& reporter, const ModelFiles& files, const ModelConfig& config);

}  // namespace kilin

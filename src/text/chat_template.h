// Whether a checkpoint's chats are in Kimi's format. Kilin runs no templates: it knows one format (chat_format.h) and says so
// when a checkpoint seems to want another.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace kilin {

/// A sentence that says why chats with the checkpoint in `folder` may go wrong, or nothing if it speaks Kimi's format.
///
/// Read are chat_template.jinja, or else `chat_template` of tokenizer_config.json. A template is foreign if it lacks one of
/// Kimi's markers, uses markers that Kimi's format does not have, or writes a system message of its own. Without a template the
/// checkpoint is taken for a base model if the tokeniser lacks a marker, or if <|im_end|> is not among the `eos_token_id` of
/// generation_config.json or config.json.
/// @throws Io, Corrupt if one of these files can't be read
std::optional<std::string> foreign_chat_format(const std::filesystem::path& folder, const Tokenizer& tokenizer);

}  // namespace kilin

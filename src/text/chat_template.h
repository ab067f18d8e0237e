// Whether a checkpoint's chats are in Kimi's format. Kilin runs no templates: it knows one format (chat_format.h) and warns
// when a checkpoint seems to want another.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace kilin {

/// A checkpoint's own template.
struct ChatTemplate {
  std::string where;  ///< for messages: "FILE: chat_template"
  std::string text;
};

/// The template of a folder: chat_template.jinja, or else `chat_template` of tokenizer_config.json. @throws Io, Corrupt
std::optional<ChatTemplate> find_chat_template(const std::filesystem::path& folder);

/// A sentence that says why chats with the checkpoint in `folder` may go wrong, or nothing if it speaks Kimi's format.
///
/// Reads the template that find_chat_template finds. It is foreign if it lacks one of Kimi's markers, uses markers that Kimi's
/// format does not have, or writes a system message of its own. A checkpoint without a template counts as a base model if the
/// tokeniser lacks a marker, or if <|im_end|> is not among the `eos_token_id` of generation_config.json or config.json.
/// @throws Io, Corrupt if one of these files can't be read
std::optional<std::string> foreign_chat_format(const std::filesystem::path& folder, const Tokenizer& tokenizer);

/// The same for a checkpoint that is not a folder. @param source names it. @param own its template, if it has one. @param
/// end_ids the tokens that end an answer, if they can tell a chat model from a base model
std::optional<std::string> foreign_chat_format(const std::string& source, const std::optional<ChatTemplate>& own,
                                               const std::optional<std::vector<int32_t>>& end_ids, const Tokenizer& tokenizer);

}  // namespace kilin

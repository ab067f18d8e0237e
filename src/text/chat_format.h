// A conversation as token ids, in the format that Kimi-Linear was trained on:
//
//   [<|im_system|>tool_declare<|im_middle|>{tools}<|im_end|>]
//   <|im_system|>system<|im_middle|>{text}<|im_end|> <|im_user|>user<|im_middle|>{text}<|im_end|>
//   <|im_assistant|>assistant<|im_middle|>{text}[{tool calls}]<|im_end|>
//   <|im_system|>{name}<|im_middle|>## Return of {call's id}\n{text}<|im_end|>
//   <|im_assistant|>assistant<|im_middle|>                                    (the prompt for the next answer)
//
// without spaces or newlines between, where {tool calls} is
//
//   <|tool_calls_section_begin|> { <|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|> }
//   <|tool_calls_section_end|>
//
// Every {...} is text from outside: names of special tokens in it stay text. No default system message is added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/tokenizer.h"
#include "text/tool_call.h"

namespace kilin {

enum class Role { System, User, Assistant, Tool };

/// "system", "user", "assistant", "tool"
std::string_view to_string(Role role);

/// The role of that name. @throws InvalidArgument
Role parse_role(std::string_view name);

struct Message {
  Role role = Role::User;

  /// Text; or, for an earlier answer of the model, the ids that were sampled after the generation prompt (including any tool
  /// calls, with or without the <|im_end|> that ended them). These are never turned into text and back: other ids may stand for
  /// the same text, and a cached prefix would be lost.
  std::variant<std::string, std::vector<int32_t>> content = std::string();

  /// If not empty, the header has it in place of the role. For a tool's result it is the function; if empty, the function is
  /// found by the call's id.
  std::string name{};

  std::vector<ToolCall> tool_calls{};  // of an assistant whose content is text; an empty id is filled in from name and index
  std::string tool_call_id{};          // of a tool's result: the call that it answers
};

/// What to write after the last message.
enum class ChatEnd {
  GenerationPrompt,  // the header of the assistant's next message
  Nothing,
};

/// Renders conversations. Immutable, so const calls are thread-safe.
class ChatFormat {
 public:
  /// `tokenizer` outlives this. @throws Unsupported, naming the token, if it lacks one of <|im_system|>, <|im_user|>,
  /// <|im_assistant|>, <|im_middle|>, <|im_end|>
  explicit ChatFormat(const Tokenizer& tokenizer);

  /// The ids of a conversation. @param tools null, or an array of declarations (any JSON; an empty one declares nothing).
  /// @throws InvalidArgument for text that is not UTF-8, ids that are no tokens, and messages that contradict their role;
  /// Unsupported if there are calls and the tokeniser lacks a token for them. Messages count from 0 in errors.
  std::vector<int32_t> encode(const std::vector<Message>& messages, const nlohmann::json& tools, ChatEnd end) const;
  std::vector<int32_t> encode(const std::vector<Message>& messages, ChatEnd end = ChatEnd::GenerationPrompt) const;

  /// The tokens that end an answer: <|im_end|>, and [EOS] and [EOT] where the tokeniser has them.
  std::vector<int32_t> stop_ids() const;

 private:
  struct Conversation;
  void open(std::string_view role_token, std::string_view name, std::vector<int32_t>& ids) const;
  void text(std::string_view what, std::vector<int32_t>& ids) const;
  void message(const Message& message, Conversation& conversation) const;
  void tool_calls(const std::vector<ToolCall>& calls, Conversation& conversation) const;

  const Tokenizer* tokenizer_;
  int32_t im_middle_, im_end_;
};

/// The declaration of tools as the model was trained to read it: keys sorted at every depth, no spaces, characters not escaped.
/// @throws InvalidArgument if a string is not UTF-8
std::string tool_declaration(const nlohmann::json& tools);

}  // namespace kilin

// The messages of a chat as they were fed, token by token, and the file that keeps them.
//
//   {"format": "kilin chat 1", "messages": [{"role": ROLE, "text": TEXT, "ids": [ID, ...]}, ...]}
//
// A system message may come first; then user and assistant take turns, and the assistant has the last word. `ids` are the whole
// message from its header to <|im_end|>. For system and user, the chat format makes them from `text`; for the assistant, they
// are what the model was given and sampled, and `text` is their text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace kilin {

struct ChatTurn {
  Role role;
  std::string text;
  std::vector<int32_t> ids;

  friend bool operator==(const ChatTurn&, const ChatTurn&) = default;
};

/// Makes and checks turns. `tokenizer` outlives it.
class ChatTurnFormat {
 public:
  /// @throws as ChatFormat
  explicit ChatTurnFormat(const Tokenizer& tokenizer);

  /// @throws InvalidArgument for text that is not UTF-8
  ChatTurn system(std::string text) const;
  ChatTurn user(std::string text) const;

  /// The model's answer: the ids that it sampled after generation_prompt(), without the one that ended it.
  ChatTurn assistant(std::span<const int32_t> sampled) const;

  /// The ids that precede an answer.
  const std::vector<int32_t>& generation_prompt() const { return generation_prompt_; }

  std::string write(const std::vector<ChatTurn>& turns) const;

  /// @param source names the text in errors. @throws Corrupt for anything that write() would not have written with this
  /// tokeniser, naming the message (they count from 0)
  std::vector<ChatTurn> parse(std::string_view text, const std::string& source) const;

 private:
  ChatTurn rendered(Role role, std::string text) const;
  void check(const ChatTurn& turn, const std::string& where) const;

  const Tokenizer* tokenizer_;
  ChatFormat chat_;
  std::vector<int32_t> generation_prompt_;
  int32_t im_end_;
};

}  // namespace kilin

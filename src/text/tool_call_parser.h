// Separates the model's text from its tool calls, token by token. Models break the format now and then: what is not a valid
// call comes out as text, so that nothing is lost.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/tool_call.h"

namespace kilin {

/// A stretch of text (never empty, always whole characters) or a complete call.
using OutputPart = std::variant<std::string, ToolCall>;

/// Reads one answer, without its generation prompt. Only special tokens count as markers: their names spelled out in ordinary
/// tokens are text.
///
/// - A call ends with <|tool_call_end|>. If that marker is missing before the next call, the end of the section or the end of
///   the answer, the call still counts if its arguments are a whole JSON object.
/// - A call without a name or without <|tool_call_argument_begin|> becomes text, with the names of its markers.
/// - A call outside a section counts. Stray markers, other special tokens and white space between calls are dropped.
/// - With a tokeniser without these tokens, everything is text.
class ToolCallParser {
 public:
  /// `tokenizer` outlives this.
  explicit ToolCallParser(const Tokenizer& tokenizer);

  /// Returns the parts that are certain now. @throws InvalidArgument for an id that is no token
  std::vector<OutputPart> push(int32_t id);

  /// Returns the rest, once the answer has ended.
  std::vector<OutputPart> finish();

  /// How many calls the answer has given so far.
  size_t calls() const { return calls_; }

 private:
  enum class State { Text, BetweenCalls, Id, Arguments };
  using Parts = std::vector<OutputPart>;

  void end_text(Parts& parts);
  void end_call(bool has_end_marker, Parts& parts);
  void add_text(std::string text, Parts& parts);

  const Tokenizer* tokenizer_;
  int32_t section_begin_, section_end_, call_begin_, argument_begin_, call_end_;  // -1 where the tokeniser has none
  StreamingDetokenizer detokenizer_;
  State state_ = State::Text;
  std::string waiting_;    // BetweenCalls: white space so far
  std::string id_;         // of the call being read
  std::string arguments_;  // of the call being read
  size_t calls_ = 0;
};

}  // namespace kilin

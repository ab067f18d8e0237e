#include "text/tool_call_parser.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json.h"

namespace kilin {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

bool is_json_object(const std::string& text) {
  try {
    return parse_json(text, "arguments").is_object();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

ToolCallParser::ToolCallParser(const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer),
      section_begin_(tokenizer.special("<|tool_calls_section_begin|>").value_or(-1)),
      section_end_(tokenizer.special("<|tool_calls_section_end|>").value_or(-1)),
      call_begin_(tokenizer.special("<|tool_call_begin|>").value_or(-1)),
      argument_begin_(tokenizer.special("<|tool_call_argument_begin|>").value_or(-1)),
      call_end_(tokenizer.special("<|tool_call_end|>").value_or(-1)),
      detokenizer_(tokenizer, Specials::Skip) {}

std::vector<OutputPart> ToolCallParser::push(int32_t id) {
  Parts parts;
  if (!tokenizer_->is_special(id)) {
    add_text(detokenizer_.push(id), parts);
    return parts;
  }
  if (id != section_begin_ && id != section_end_ && id != call_begin_ && id != argument_begin_ && id != call_end_) return parts;
  end_text(parts);
  if (id == argument_begin_) {
    if (state_ == State::Id) state_ = State::Arguments;
    return parts;
  }
  if (state_ == State::Id || state_ == State::Arguments) end_call(id == call_end_, parts);
  if (id == call_begin_) state_ = State::Id;
  if (id == section_begin_) state_ = State::BetweenCalls;
  if (id == section_end_) state_ = State::Text;
  return parts;
}

std::vector<OutputPart> ToolCallParser::finish() {
  Parts parts;
  end_text(parts);
  if (state_ == State::Id || state_ == State::Arguments) end_call(false, parts);
  state_ = State::Text;
  return parts;
}

// A marker ends the text before it, even inside a character.
void ToolCallParser::end_text(Parts& parts) {
  add_text(detokenizer_.finish(), parts);
  waiting_.clear();
}

void ToolCallParser::add_text(std::string text, Parts& parts) {
  switch (state_) {
    case State::Id:
      id_ += text;
      return;
    case State::Arguments:
      arguments_ += text;
      return;
    case State::BetweenCalls:
      waiting_ += text;
      if (waiting_.find_first_not_of(kSpaces) == std::string::npos) return;
      text = std::exchange(waiting_, {});
      state_ = State::Text;  // text is not expected here, but the model wrote some
      break;
    case State::Text:
      break;
  }
  if (!text.empty()) parts.emplace_back(std::move(text));
}

// Returns the call that was being read, or its text if it is not a valid call.
void ToolCallParser::end_call(bool has_end_marker, Parts& parts) {
  ToolCall call{trimmed(id_), "", arguments_};
  call.name = trimmed(std::string(name_in_tool_call_id(call.id)));
  const bool has_arguments = state_ == State::Arguments;
  if (has_arguments && !call.name.empty() && (has_end_marker || is_json_object(arguments_))) {
    parts.emplace_back(std::move(call));
    ++calls_;
  } else {
    std::string text = "<|tool_call_begin|>" + id_;
    if (has_arguments) text += "<|tool_call_argument_begin|>" + arguments_;
    if (has_end_marker) text += "<|tool_call_end|>";
    parts.emplace_back(std::move(text));
  }
  id_.clear();
  arguments_.clear();
  state_ = State::BetweenCalls;
}

}  // namespace kilin

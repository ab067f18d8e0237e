#include "text/chat_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"

namespace kilin {

namespace {

// The token that opens a role's message; tools use the system's.
std::string_view token_of(Role role) {
  switch (role) {
    case Role::User:
      return "<|im_user|>";
    case Role::Assistant:
      return "<|im_assistant|>";
    case Role::System:
    case Role::Tool:
      break;
  }
  return "<|im_system|>";
}

// Refuses what no message may hold, whatever the conversation.
void check(const Message& message) {
  const bool is_ids = std::holds_alternative<std::vector<int32_t>>(message.content);
  if (message.role != Role::Assistant && is_ids)
    raise(ErrorCode::InvalidArgument, "its role is '{}'; only an assistant's content can be token ids",
          to_string(message.role));
  if (message.role != Role::Assistant && !message.tool_calls.empty())
    raise(ErrorCode::InvalidArgument, "its role is '{}'; only an assistant can have tool_calls", to_string(message.role));
  if (is_ids && !message.tool_calls.empty())
    raise(ErrorCode::InvalidArgument, "its content is token ids, which hold their tool calls; tool_calls must be empty");
  if (message.role == Role::Tool && message.tool_call_id.empty())
    raise(ErrorCode::InvalidArgument, "it is a tool's result; tool_call_id must name the call that it answers");
  if (message.role != Role::Tool && !message.tool_call_id.empty())
    raise(ErrorCode::InvalidArgument, "its role is '{}'; only a tool's result has a tool_call_id", to_string(message.role));
}

// Writes the shortest digits that give the number back, as Python does: Python wrote the declarations that the model was
// trained on. Json::dump() switches to exponents at 1e15, Python at 1e16.
void append_number(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";  // no JSON text holds such a number, but a program's own value may
    return;
  }
  const double magnitude = std::abs(number);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  std::array<char, 32> digits;
  const auto end =
      std::to_chars(digits.begin(), digits.end(), number, plain ? std::chars_format::fixed : std::chars_format::scientific).ptr;
  const std::string_view written(digits.begin(), end);
  out += written;
  if (plain && written.find('.') == std::string_view::npos) out += ".0";
}

void append_declaration(const Json& value, std::string& out) {
  const auto append_list = [&](char open, char close, auto&& append_item) {
    out += open;
    for (auto item = value.begin(); item != value.end(); ++item) {
      if (item != value.begin()) out += ',';
      append_item(item);
    }
    out += close;
  };
  if (value.is_object()) {
    append_list('{', '}', [&](const Json::const_iterator& item) {  // whose keys are sorted
      out += Json(item.key()).dump() + ":";
      append_declaration(item.value(), out);
    });
  } else if (value.is_array()) {
    append_list('[', ']', [&](const Json::const_iterator& item) { append_declaration(*item, out); });
  } else if (value.is_number_float()) {
    append_number(value.get<double>(), out);
  } else {
    out += value.dump();
  }
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::System:
      return "system";
    case Role::User:
      return "user";
    case Role::Assistant:
      return "assistant";
    case Role::Tool:
      return "tool";
  }
  return "unknown";
}

Role parse_role(std::string_view name) {
  for (Role role : {Role::System, Role::User, Role::Assistant, Role::Tool})
    if (name == to_string(role)) return role;
  raise(ErrorCode::InvalidArgument, "role '{}' is not known; system, user, assistant and tool are", name);
}

std::string tool_declaration(const Json& tools) {
  std::string text;
  try {
    append_declaration(tools, text);
  } catch (const Json::exception&) {
    raise(ErrorCode::InvalidArgument, "tools: a string is not valid UTF-8");
  }
  return text;
}

// What has been written so far, and the calls that later messages refer to.
struct ChatFormat::Conversation {
  std::vector<int32_t> ids;
  size_t calls = 0;  // of tools, in all messages: the next one's index
  std::unordered_map<std::string, std::string> function_of_call;

  // The header of a tool's result names the function. Clients that use OpenAI's protocol give only the call's id.
  std::string function_of(const std::string& call_id) const {
    if (const auto known = function_of_call.find(call_id); known != function_of_call.end()) return known->second;
    return call_id.starts_with("functions.") ? std::string(name_in_tool_call_id(call_id)) : "";
  }
};

ChatFormat::ChatFormat(const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer),
      im_middle_(tokenizer.require_special("<|im_middle|>")),
      im_end_(tokenizer.require_special("<|im_end|>")) {
  for (Role role : {Role::System, Role::User, Role::Assistant}) tokenizer.require_special(token_of(role));
}

std::vector<int32_t> ChatFormat::encode(const std::vector<Message>& messages, ChatEnd end) const {
  return encode(messages, Json(), end);
}

std::vector<int32_t> ChatFormat::encode(const std::vector<Message>& messages, const Json& tools, ChatEnd end) const {
  Conversation conversation;
  if (!tools.is_null() && !tools.is_array())
    raise(ErrorCode::InvalidArgument, "tools is a JSON {}; expected an array of declarations", tools.type_name());
  if (!tools.empty()) {
    open(token_of(Role::System), "tool_declare", conversation.ids);
    text(tool_declaration(tools), conversation.ids);
    conversation.ids.push_back(im_end_);
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    try {
      message(messages[i], conversation);
    } catch (const Error& error) {
      raise(error.code(), "message {}: {}", i, error.what());
    }
  }
  if (end == ChatEnd::GenerationPrompt) open(token_of(Role::Assistant), to_string(Role::Assistant), conversation.ids);
  return std::move(conversation.ids);
}

void ChatFormat::message(const Message& message, Conversation& conversation) const {
  check(message);
  std::vector<int32_t>& ids = conversation.ids;
  std::string name = message.name;
  if (name.empty() && message.role == Role::Tool) name = conversation.function_of(message.tool_call_id);
  if (name.empty()) name = to_string(message.role);
  open(token_of(message.role), name, ids);

  if (const auto* sampled = std::get_if<std::vector<int32_t>>(&message.content)) {
    tokenizer_->require_tokens(*sampled);
    if (const auto begin = tokenizer_->special("<|tool_call_begin|>"))
      conversation.calls += static_cast<size_t>(std::count(sampled->begin(), sampled->end(), *begin));
    ids.insert(ids.end(), sampled->begin(), sampled->end());
    if (!sampled->empty() && sampled->back() == im_end_) return;
  } else {
    const auto& content = std::get<std::string>(message.content);
    // Encoded as one text: a piece of the tokeniser may reach across the newline.
    text(message.role == Role::Tool ? "## Return of " + message.tool_call_id + "\n" + content : content, ids);
    if (!message.tool_calls.empty()) tool_calls(message.tool_calls, conversation);
  }
  ids.push_back(im_end_);
}

void ChatFormat::tool_calls(const std::vector<ToolCall>& calls, Conversation& conversation) const {
  std::vector<int32_t>& ids = conversation.ids;
  ids.push_back(tokenizer_->require_special("<|tool_calls_section_begin|>"));
  for (const ToolCall& call : calls) {
    if (call.id.empty() && call.name.empty()) raise(ErrorCode::InvalidArgument, "a tool call has neither an id nor a name");
    const std::string id = call.id.empty() ? tool_call_id(call.name, conversation.calls) : call.id;
    ids.push_back(tokenizer_->require_special("<|tool_call_begin|>"));
    text(id, ids);
    ids.push_back(tokenizer_->require_special("<|tool_call_argument_begin|>"));
    text(call.arguments, ids);
    ids.push_back(tokenizer_->require_special("<|tool_call_end|>"));
    if (!call.name.empty()) conversation.function_of_call[id] = call.name;
    ++conversation.calls;
  }
  ids.push_back(tokenizer_->require_special("<|tool_calls_section_end|>"));
}

std::vector<int32_t> ChatFormat::stop_ids() const {
  std::vector<int32_t> ids = {im_end_};
  for (const char* name : {"[EOS]", "[EOT]"})
    if (const auto id = tokenizer_->special(name)) ids.push_back(*id);
  return ids;
}

void ChatFormat::open(std::string_view role_token, std::string_view name, std::vector<int32_t>& ids) const {
  ids.push_back(tokenizer_->require_special(role_token));
  text(name, ids);
  ids.push_back(im_middle_);
}

void ChatFormat::text(std::string_view what, std::vector<int32_t>& ids) const {
  const std::vector<int32_t> encoded = tokenizer_->encode(what);
  ids.insert(ids.end(), encoded.begin(), encoded.end());
}

}  // namespace kilin

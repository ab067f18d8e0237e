// A tool call by the model, and the id by which its result refers to it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kilin {

struct ToolCall {
  std::string id;         // "functions.NAME:INDEX" when the model wrote it
  std::string name;       // of the function
  std::string arguments;  // a JSON object as text, as the model wrote it; not checked

  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

/// "functions.NAME:INDEX"
std::string tool_call_id(std::string_view name, size_t index);

/// The function's name in such an id. The prefix and the index may be missing, since models forget them. Empty if there is
/// nothing else.
std::string_view name_in_tool_call_id(std::string_view id);

}  // namespace kilin

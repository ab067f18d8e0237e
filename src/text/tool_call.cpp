#include "text/tool_call.h"

#include <fmt/core.h>

#include <algorithm>

namespace kilin {

std::string tool_call_id(std::string_view name, size_t index) { return fmt::format("functions.{}:{}", name, index); }

std::string_view name_in_tool_call_id(std::string_view id) {
  constexpr std::string_view prefix = "functions.";
  if (id.starts_with(prefix)) id.remove_prefix(prefix.size());
  const size_t colon = id.rfind(':');
  if (colon == std::string_view::npos) return id;
  const std::string_view index = id.substr(colon + 1);
  const bool is_number = std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? id.substr(0, colon) : id;
}

}  // namespace kilin

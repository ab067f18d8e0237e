// Text of others, made safe to show.
#pragma once

#include <string>
#include <string_view>

namespace kilin::cli {

/// Control characters but newline and tab become U+FFFD: a model, or whoever wrote its prompt, must not move the cursor or
/// rename the window of a terminal.
std::string without_controls(std::string_view text);

}  // namespace kilin::cli

// A token's bytes as text that can be read: what would be invisible, or turn a line around, stands there by its number.
#pragma once

#include <string>
#include <string_view>

namespace kilin::cli {

/// Valid UTF-8 on one line. Control and format characters, and spaces other than the plain one, become `\n`, `\t` or `\u202e`;
/// bytes that are no part of a whole character `\xe4`; a backslash `\\`.
std::string shown_token(std::string_view bytes);

}  // namespace kilin::cli

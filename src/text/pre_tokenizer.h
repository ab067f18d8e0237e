// Cuts text into the pieces that byte-pair encoding then works on, each on its own. It gives the same pieces as a backtracking
// engine that matches Kimi's split pattern repeatedly, each time from the end of the last match:
//
//   [\p{Han}]+
//   | [^\r\n\p{L}\p{N}]? U* D+ S?        U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]
//   | [^\r\n\p{L}\p{N}]? U+ D* S?        D = [\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]
//   | \p{N}{1,3}                         S = (?i:'s|'t|'re|'ve|'m|'ll|'d)
//   | [ ]?[^\s\p{L}\p{N}]+[\r\n]*
//   | \s*[\r\n]+
//   | \s+(?!\S)
//   | \s+
//
// This is a scanner, not a regular expression, because no library matches this pattern both correctly and in linear time.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace kilin {

/// The pieces of a text, first to last; together they are the text. Takes linear time for any text.
class PreTokenizer {
 public:
  /// @pre `text` is valid UTF-8, and outlives this.
  explicit PreTokenizer(std::string_view text) : text_(text) {}

  /// The next piece, not empty; nothing at the end.
  std::optional<std::string_view> next();

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace kilin

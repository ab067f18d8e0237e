// Cuts text into the pieces that byte-pair encoding then works on, each on its own. It gives the same pieces as Kimi's split
// pattern, matched by a backtracking engine again and again from where the last match ended:
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
// A scanner stands here instead of a regular expression because no library matches this one right and in linear time.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace kilin {

/// The pieces of a text, first to last; together they are the text. Takes time linear in the text, whatever it is.
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

// Cuts long text before special tokens and the split pattern are searched for. Kimi's tokeniser does so to limit the work of
// its regular expression. A cut can end a piece early, so the same cuts are needed to get the same ids.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace kilin {

/// The parts of a text, first to last; together they are the text. Each stretch of 400,000 characters from the start is cut
/// separately: inside it, a run of white space (by Python's str.isspace), or of other characters, that is longer than 25,000 is
/// cut after every 25,000. Characters are code points, as in Python.
class TextCuts {
 public:
  static constexpr size_t kMaxCharacters = 400'000;
  static constexpr size_t kMaxRun = 25'000;

  /// @pre `text` is valid UTF-8, and outlives this.
  explicit TextCuts(std::string_view text) : text_(text) {}

  /// The next part, not empty; nothing at the end.
  std::optional<std::string_view> next();

 private:
  std::string_view text_;
  size_t at_ = 0;
  size_t characters_ = 0;  // of the current stretch, before at_
  size_t run_ = 0;         // characters of the run that ends before at_
  bool run_is_space_ = false;
};

}  // namespace kilin

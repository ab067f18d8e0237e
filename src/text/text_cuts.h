// The first cut of a long text, before special tokens and the split pattern are looked for: Kimi's tokeniser makes it to spare
// its regular expression, and since a cut can end a piece early, whoever wants the same ids makes the same cuts.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace kilin {

/// The parts of a text, first to last; together they are the text. Each stretch of 400,000 characters from the start is cut for
/// itself: inside it, a run of white-space characters (as Python's str.isspace has it), or of others, that grows beyond 25,000
/// is cut after every 25,000. Characters are code points, as in Python.
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

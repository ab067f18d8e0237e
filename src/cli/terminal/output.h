// Standard output and standard error: bytes go out at once, and a failure to write is noticed.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "core/error.h"

namespace kilin::cli {

/// Thrown where whoever read our output has gone (a closed pipe): no fault that anybody needs to be told of.
struct ReaderGone {};

/// Standard output can't be written: nothing that is done afterwards would be seen.
class OutputError : public Error {
 public:
  using Error::Error;
};

/// A stream that is open already. Copies write to the same stream.
class Output {
 public:
  static Output standard_output();  ///< its failures are errors
  static Output standard_error();   ///< its failures are ignored: there is nowhere to tell them

  /// @throws OutputError, ReaderGone
  void write(std::string_view text) const;

  /// fmt's format. @throws as write
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) const {
    write(fmt::vformat(format, fmt::make_format_args(args...)));
  }

  bool is_terminal() const { return is_terminal_; }
  /// A terminal that obeys escape sequences, so that a line on it can be taken back: not one of TERM=dumb, or without TERM.
  bool can_erase() const { return can_erase_; }
  /// One that may show bold and dim besides: NO_COLOR is not set (no-color.org).
  bool has_styles() const { return has_styles_; }
  size_t columns() const;  ///< of the terminal as it is now; 80 where it does not say

 private:
  enum class OnFailure { Throw, Ignore };
  Output(int descriptor, OnFailure on_failure);

  int descriptor_;
  OnFailure on_failure_;
  bool is_terminal_, can_erase_, has_styles_;
};

/// How text is set off where a terminal has styles.
enum class Style { Bold, Dim };

/// The text in this style, or as it is where `to` has none.
std::string styled(const Output& to, Style style, std::string_view text);

/// Lines that are written in one piece, so that a reader who leaves early ends a text as it ends JSON.
class Page {
 public:
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::vformat(format, fmt::make_format_args(args...));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Makes sure that descriptors 0 to 2 are open, so that no file that is opened later becomes "standard output"; and that
/// writing to a closed pipe is an error instead of the end. Call it once, first.
void prepare_standard_streams();

}  // namespace kilin::cli

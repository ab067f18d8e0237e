// The one exception type of the library. What is wrong with the input is said where it was found, in one line that names the
// thing, its value and what was expected.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace kilin {

enum class ErrorCode {
  InvalidArgument,    // the caller passed something that can never be right
  NotFound,           // a file, tensor or name that is not there
  Corrupt,            // data that breaks the rules of its own format
  Unsupported,        // valid, but nothing that Kilin runs
  NotImplemented,     // planned; the door exists so that callers can be written against it
  Unavailable,        // an inner value that a block of this kind has not
  OutOfOrder,         // an inner value that the forward pass has left behind
  ResourceExhausted,  // a pool, a workspace or the memory is full
  Io,                 // the operating system refused
};

/// The code's name, for machine-readable output: "invalid_argument", "not_found", ...
const char* to_string(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

/// Throws Error(code, message formatted as by fmt).
template <typename... Args>
[[noreturn]] void raise(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::vformat(format, fmt::make_format_args(args...)));
}

/// Text from a file, fit to stand in a message: a control character (C0, DEL, C1) and each byte that is no part of a valid
/// UTF-8 character become '?', and what goes beyond 120 bytes is cut with "...".
std::string printable(std::string_view text);

/// A message or a path, fit to be shown: as printable, but whole, and a newline stays. File names are bytes.
std::string displayable(std::string_view text);

/// Throws Error(Io, "`what`: <the text of errno>"). Call it before anything else can change errno.
[[noreturn]] void raise_errno(const std::string& what);

}  // namespace kilin

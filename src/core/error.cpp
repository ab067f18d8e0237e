#include "core/error.h"

#include <cerrno>
#include <system_error>

namespace kilin {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid_argument";
    case ErrorCode::NotFound:
      return "not_found";
    case ErrorCode::Corrupt:
      return "corrupt";
    case ErrorCode::Unsupported:
      return "unsupported";
    case ErrorCode::NotImplemented:
      return "not_implemented";
    case ErrorCode::ResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::Io:
      return "io";
  }
  return "unknown";
}

std::string printable(std::string_view text) {
  constexpr size_t kMost = 120;
  std::string shown(text.substr(0, kMost));
  if (text.size() > kMost) {
    // Not in the middle of a UTF-8 character.
    while (!shown.empty() && (static_cast<unsigned char>(text[shown.size()]) & 0xc0u) == 0x80u) shown.pop_back();
    shown += "...";
  }
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return shown;
}

void raise_errno(const std::string& what) {
  const int code = errno;
  const ErrorCode kind = code == ENOENT ? ErrorCode::NotFound : ErrorCode::Io;
  throw Error(kind, what + ": " + std::generic_category().message(code));
}

}  // namespace kilin

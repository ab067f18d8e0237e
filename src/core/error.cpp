#include "core/error.h"

#include <algorithm>
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
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::OutOfOrder:
      return "out_of_order";
    case ErrorCode::ResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::Io:
      return "io";
  }
  return "unknown";
}

namespace {

// Bytes of the UTF-8 character that `text` starts with; 0 if it starts with none (Unicode 15, table 3-7).
size_t character_bytes(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto goes_on = [byte](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !goes_on(1)) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) {
    const bool overlong = first == 0xe0 && second < 0xa0, surrogate = first == 0xed && second > 0x9f;
    return overlong || surrogate || !goes_on(2) ? 0 : 3;
  }
  const bool overlong = first == 0xf0 && second < 0x90, too_large = first == 0xf4 && second > 0x8f;
  return overlong || too_large || !goes_on(2) || !goes_on(3) ? 0 : 4;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;  // U+0080 to U+009F
}

}  // namespace

std::string displayable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    shown += bytes == 0 || (character != "\n" && is_control(character)) ? "?" : character;
    text.remove_prefix(character.size());
  }
  return shown;
}

std::string printable(std::string_view text) {
  constexpr size_t kMost = 120;
  std::string shown;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    const std::string_view piece = bytes == 0 || is_control(character) ? "?" : character;
    if (shown.size() + piece.size() > kMost) return shown + "...";
    shown += piece;
    text.remove_prefix(character.size());
  }
  return shown;
}

void raise_errno(const std::string& what) {
  const int code = errno;
  const ErrorCode kind = code == ENOENT ? ErrorCode::NotFound : ErrorCode::Io;
  throw Error(kind, what + ": " + std::generic_category().message(code));
}

}  // namespace kilin

#include "text/utf8.h"

#include <cstdint>

#include "core/error.h"
#include "core/file.h"

namespace kilin {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// What may follow a lead byte: the number of continuation bytes, and the range of the first one. That range excludes overlong
// forms, surrogates and code points beyond U+10FFFF (Unicode 15, table 3-7).
struct Lead {
  size_t continuations;
  uint8_t low, high;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {1, 0x80, 0xbf};
  if (byte == 0xe0) return {2, 0xa0, 0xbf};
  if (byte == 0xed) return {2, 0x80, 0x9f};
  if (byte < 0xf0) return {2, 0x80, 0xbf};
  if (byte == 0xf0) return {3, 0x90, 0xbf};
  if (byte < 0xf4) return {3, 0x80, 0xbf};
  if (byte == 0xf4) return {3, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

Utf8Unit utf8_unit(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const size_t left = text.size() - at;
  if (byte(0) < 0x80) return {Utf8Unit::Character, 1, byte(0)};
  const Lead lead = lead_of(byte(0));
  if (lead.continuations == 0) return {Utf8Unit::Broken, 1, 0};
  char32_t code_point = byte(0) & (0x3fu >> lead.continuations);
  for (size_t i = 1; i <= lead.continuations; ++i) {
    if (i == left) return {Utf8Unit::Incomplete, i, 0};
    const uint8_t low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xbf;
    if (byte(i) < low || byte(i) > high) return {Utf8Unit::Broken, i, 0};
    code_point = code_point << 6 | (byte(i) & 0x3fu);
  }
  return {Utf8Unit::Character, lead.continuations + 1, code_point};
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Unit unit = utf8_unit(text, at);
    if (unit.kind != Utf8Unit::Character) return at;
    at += unit.bytes;
  }
  return std::nullopt;
}

void require_utf8(std::string_view text, std::string_view what) {
  if (const auto at = first_invalid_utf8(text))
    raise(ErrorCode::InvalidArgument, "{} is not valid UTF-8: byte 0x{:02x} at offset {} of {}", what,
          static_cast<unsigned char>(text[*at]), *at, text.size());
}

std::string read_utf8(const std::filesystem::path& file) {
  std::string text = read_file(file);
  require_utf8(text, file.string());
  return text;
}

std::string replace_broken_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Unit unit = utf8_unit(bytes, at);
    text += unit.kind == Utf8Unit::Character ? bytes.substr(at, unit.bytes) : kReplacement;
    at += unit.bytes;
  }
  return text;
}

}  // namespace kilin

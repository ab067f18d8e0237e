#include "cli/lens_page/shown_token.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace kilin::cli {

namespace {

// What has no shape of its own: controls, spaces, marks of direction, joiners, fillers, tags (Unicode 15, Cc, Cf, Zs, Zl, Zp
// and the Default_Ignorable ones among the rest). Variation selectors stay: emoji need them.
constexpr std::pair<char32_t, char32_t> kInvisible[] = {
    {0x00, 0x1f},     {0x7f, 0xa0},     {0xad, 0xad},       {0x34f, 0x34f},     {0x600, 0x605},    {0x61c, 0x61c},
    {0x6dd, 0x6dd},   {0x70f, 0x70f},   {0x115f, 0x1160},   {0x1680, 0x1680},   {0x17b4, 0x17b5},  {0x180b, 0x180f},
    {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f},   {0x3000, 0x3000},   {0x3164, 0x3164},  {0xfeff, 0xfeff},
    {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

bool is_invisible(char32_t c) {
  return std::ranges::any_of(kInvisible, [c](const auto& range) { return range.first <= c && c <= range.second; });
}

}  // namespace

std::string shown_token(std::string_view bytes) {
  std::string shown;
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Unit unit = utf8_unit(bytes, at);
    const std::string_view part = bytes.substr(at, unit.bytes);
    at += unit.bytes;
    const auto code = static_cast<uint32_t>(unit.code_point);
    if (unit.kind != Utf8Unit::Character) {
      for (char byte : part) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    } else if (unit.code_point == U'\n') {
      shown += "\\n";
    } else if (unit.code_point == U'\t') {
      shown += "\\t";
    } else if (unit.code_point == U'\r') {
      shown += "\\r";
    } else if (unit.code_point == U'\\') {
      shown += "\\\\";
    } else if (!is_invisible(unit.code_point)) {
      shown += part;
    } else if (code <= 0xffff) {
      shown += fmt::format("\\u{:04x}", code);
    } else {
      shown += fmt::format("\\u{{{:x}}}", code);
    }
  }
  return shown;
}

}  // namespace kilin::cli

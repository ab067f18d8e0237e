#include "cli/lens_page/base64.h"

#include <cstdint>
#include <string_view>

namespace kilin::cli {

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t left = bytes.size() - at;
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < left ? std::to_integer<uint32_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += i <= left ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace kilin::cli

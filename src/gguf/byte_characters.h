// GPT-2's way to write any bytes as text that can be seen, which GGUF files use for tokens: visible Latin-1 stands for itself,
// the other 68 bytes are U+0100 and on, in order.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace kilin {

namespace byte_characters_detail {

constexpr bool is_visible(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

inline constexpr std::array<char16_t, 256> kCharacters = [] {
  std::array<char16_t, 256> characters{};
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) characters[byte] = static_cast<char16_t>(is_visible(byte) ? byte : next++);
  return characters;
}();

inline constexpr std::array<int, 256 + 68> kBytes = [] {
  std::array<int, 256 + 68> bytes{};
  for (int& byte : bytes) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = static_cast<int>(byte);
  return bytes;
}();

}  // namespace byte_characters_detail

/// The byte that a character stands for; nothing if for none.
inline std::optional<char> byte_of_character(char32_t character) {
  using byte_characters_detail::kBytes;
  if (character >= kBytes.size() || kBytes[character] < 0) return std::nullopt;
  return static_cast<char>(kBytes[character]);
}

/// Bytes as characters, in UTF-8.
inline std::string as_characters(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const char16_t code = byte_characters_detail::kCharacters[static_cast<unsigned char>(byte)];
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xc0 | (code >> 6));
      text += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return text;
}

}  // namespace kilin

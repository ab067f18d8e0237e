// Reads UTF-8: strictly for input, with U+FFFD for broken bytes in output.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kilin {

/// What a place in arbitrary bytes holds.
struct Utf8Unit {
  enum Kind {
    Character,   // a whole character of 1 to 4 bytes
    Incomplete,  // the text ends inside a character that is valid as far as it goes
    Broken,  // bytes that begin no character; as many as one U+FFFD replaces (Unicode 15, "substitution of maximal subparts")
  };
  Kind kind;
  size_t bytes;         // at least 1
  char32_t code_point;  // of a Character, else 0
};

/// @pre at < text.size()
Utf8Unit utf8_unit(std::string_view text, size_t at);

/// Bytes of the character that `lead` begins. @pre `lead` is the first byte of a character in valid UTF-8.
inline size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/// Offset of the first byte that does not belong to a whole character (surrogates, overlong forms and code points beyond
/// U+10FFFF are not characters), or nothing if all of `text` is UTF-8.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// Throws InvalidArgument, naming the byte's offset, if `text` is not UTF-8. @param what names it, such as "text".
void require_utf8(std::string_view text, std::string_view what);

/// The text of a file. @throws NotFound, Io; InvalidArgument, naming file and offset, if it is not UTF-8
std::string read_utf8(const std::filesystem::path& file);

/// The bytes as UTF-8, with U+FFFD for broken ones: Python's bytes.decode(errors="replace").
std::string replace_broken_utf8(std::string_view bytes);

}  // namespace kilin

// The character classes that the tokeniser's split pattern uses. The table is made at build time from the Unicode Character
// Database (tools/make_unicode_classes.py).
#pragma once

#include <cstdint>

namespace kilin {

/// The classes of one character: a set of the bits below.
struct CharClass {
  static constexpr uint8_t kHan = 1;           // script Han: letters, numbers (U+3007) and symbols (radicals)
  static constexpr uint8_t kLuLt = 2;          // upper and title case letters
  static constexpr uint8_t kLl = 4;            // lower case letters
  static constexpr uint8_t kLmLo = 8;          // modifier letters and letters without case
  static constexpr uint8_t kM = 16;            // marks
  static constexpr uint8_t kN = 32;            // numbers of any kind
  static constexpr uint8_t kWhiteSpace = 64;   // White_Space: the \s of a regular expression
  static constexpr uint8_t kStrIsSpace = 128;  // Python's str.isspace(): White_Space and U+001C..U+001F
  static constexpr uint8_t kL = kLuLt | kLl | kLmLo;
};

/// The classes of a code point; none for one beyond U+10FFFF. A look-up in two tables.
uint8_t classes_of(char32_t code_point);

/// The version of Unicode that the table was made from.
struct UnicodeVersion {
  int major, minor;
};
UnicodeVersion unicode_version();

}  // namespace kilin

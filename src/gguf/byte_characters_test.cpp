#include "gguf/byte_characters.h"

#include <gtest/gtest.h>

#include <set>

#include "text/utf8.h"

namespace kilin {
namespace {

TEST(ByteCharacters, EveryByteComesBack) {
  std::set<std::string> characters;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::string text = as_characters({&c, 1});
    const Utf8Unit unit = utf8_unit(text, 0);
    ASSERT_EQ(unit.kind, Utf8Unit::Character) << byte;
    EXPECT_EQ(unit.bytes, text.size());
    EXPECT_EQ(byte_of_character(unit.code_point), c);
    characters.insert(text);
  }
  EXPECT_EQ(characters.size(), 256u);
}

TEST(ByteCharacters, AreThoseOfGpt2) {
  EXPECT_EQ(as_characters("a b\n"),
            "a\xC4\xA0"
            "b\xC4\x8A");  // space is U+0120, newline U+010A
  EXPECT_EQ(byte_of_character(0x144), std::nullopt);
  EXPECT_EQ(byte_of_character(' '), std::nullopt);
}

}  // namespace
}  // namespace kilin

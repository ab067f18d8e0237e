#include "cli/lens_page/shown_token.h"

#include <gtest/gtest.h>

namespace kilin::cli {
namespace {

TEST(ShownToken, LeavesTextAsItIs) {
  for (const char* text : {"", " whale", "<|im_end|>", "</script>", "麒麟", "שלום", "🐳", "❤️", "é"})
    EXPECT_EQ(shown_token(text), text);
}

TEST(ShownToken, WritesWhatIsInvisibleByItsNumber) {
  EXPECT_EQ(shown_token("\n\r\t"), "\\n\\r\\t");
  EXPECT_EQ(shown_token(std::string_view("\0\x1b\x7f", 3)), "\\u0000\\u001b\\u007f");
  EXPECT_EQ(shown_token("a\u202eb\u2028\u200d\u00a0\ufeff"), "a\\u202eb\\u2028\\u200d\\u00a0\\ufeff");
  EXPECT_EQ(shown_token("\U000e0041"), "\\u{e0041}");
  EXPECT_EQ(shown_token("\\n"), "\\\\n");
}

TEST(ShownToken, WritesPiecesOfCharactersByByte) {
  EXPECT_EQ(shown_token("\xe9\xba"), "\\xe9\\xba");  // the first two bytes of a character of three
  EXPECT_EQ(shown_token("\x92 the"), "\\x92 the");   // the last of one
  EXPECT_EQ(shown_token("a\xff\xfe"), "a\\xff\\xfe");
}

}  // namespace
}  // namespace kilin::cli

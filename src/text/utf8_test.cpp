#include "text/utf8.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace kilin {
namespace {

using namespace std::string_literals;

TEST(Utf8, AcceptsEveryCharacterAndNothingElse) {
  for (const char* text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_FALSE(first_invalid_utf8(text)) << text;
  for (const char* text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc2", "\xe4\xb8", "\xf0\x9f\x98"}) {
    EXPECT_EQ(first_invalid_utf8(text), 0u) << text;
    EXPECT_EQ(first_invalid_utf8("a中"s + text), 4u) << text;
  }
}

TEST(Utf8, AnErrorNamesTheByteAndItsOffset) {
  try {
    require_utf8("ab\xff"s, "text");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_STREQ(error.what(), "text is not valid UTF-8: byte 0xff at offset 2 of 3");
  }
}

// What CPython 3.11 gives for bytes.decode("utf-8", errors="replace").
TEST(Utf8, BrokenBytesAreReplacedAsPythonDoes) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(replace_broken_utf8("plain 中😀"), "plain 中😀");
  EXPECT_EQ(replace_broken_utf8("a\x80z"), "a" + r + "z");
  EXPECT_EQ(replace_broken_utf8("\xe4\xb8"), r);
  EXPECT_EQ(replace_broken_utf8("\xe4\xb8z"), r + "z");
  EXPECT_EQ(replace_broken_utf8("\xf0\x9f\x98z"), r + "z");
  EXPECT_EQ(replace_broken_utf8("\xf0\x9f\xf0\x9f\x98\x80"), r + "😀");
  EXPECT_EQ(replace_broken_utf8("\xed\xa0\x80"), r + r + r);
  EXPECT_EQ(replace_broken_utf8("\xc0\x80"), r + r);
  EXPECT_EQ(replace_broken_utf8("\xf4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(replace_broken_utf8("\xf8\x88\x80\x80\x80"), r + r + r + r + r);
}

}  // namespace
}  // namespace kilin

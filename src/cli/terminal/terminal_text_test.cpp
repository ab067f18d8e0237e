#include "cli/terminal/terminal_text.h"

#include <gtest/gtest.h>

namespace kilin::cli {
namespace {

TEST(TerminalText, ControlsBecomeReplacementCharacters) {
  EXPECT_EQ(without_controls("\x1b[2Jclear"), "\uFFFD[2Jclear");
  EXPECT_EQ(without_controls("a\rb\x07\x7f"), "a\uFFFDb\uFFFD\uFFFD");
  EXPECT_EQ(without_controls("\u009b1m"), "\uFFFD1m");  // CSI as one character
  EXPECT_EQ(without_controls(std::string_view("\0", 1)), "\uFFFD");
}

TEST(TerminalText, OtherTextStaysAsItIs) {
  for (const char* text : {"", "plain\n\ttext", "\u00a0\u00c2\u00e9", "\u5317\u4eac \U0001f40b"})
    EXPECT_EQ(without_controls(text), text);
}

}  // namespace
}  // namespace kilin::cli

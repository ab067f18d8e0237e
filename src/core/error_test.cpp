#include "core/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace kilin {
namespace {

std::string repeated(const char* text, size_t times, const char* end = "") {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all += end;
}

TEST(Error, CarriesItsCodeAndTheFormattedMessage) {
  try {
    raise(ErrorCode::Corrupt, "{}: '{}' is {}; expected {}", "config.json", "hidden_size", -1, "a positive number");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    EXPECT_STREQ(error.what(), "config.json: 'hidden_size' is -1; expected a positive number");
  }
}

TEST(Printable, KeepsAMessageOnOneLineAndShort) {
  EXPECT_EQ(printable("model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(printable("a\nb\x1b[2J\x7f"), "a?b?[2J?");
  EXPECT_EQ(printable(repeated("x", 1000)), repeated("x", 120, "..."));
  // A character across the cut goes whole.
  EXPECT_EQ(printable(repeated("x", 119, "\xe9\xba\x92 and more")), repeated("x", 119, "..."));
}

TEST(Printable, ShowsValidUtf8AsItIs) {
  for (const char* text : {"\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xe9\xba\x92\xe9\xba\x9f",
                           "\xf0\x90\x80\x80", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsC1ControlsAndBrokenUtf8AsQuestionMarks) {
  EXPECT_EQ(printable("a\xc2\x80z\xc2\x9f!\xc2\x9b"), "a?z?!?");
  EXPECT_EQ(printable("\xff-\x80-\xc3"), "?-?-?");
  EXPECT_EQ(printable("\xc0\x80 \xc1\xbf"), "?? ??") << "overlong";
  EXPECT_EQ(printable("\xe0\x9f\xbf"), "???") << "overlong";
  EXPECT_EQ(printable("\xf0\x8f\xbf\xbf"), "????") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "???") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80\xf5"), "?????") << "beyond U+10FFFF";
  EXPECT_EQ(printable("\xe9\xba+\xf0\x9f\x98"), "??+???") << "broken off";
  EXPECT_EQ(printable(repeated("\x80", 1000)), repeated("?", 120, "..."));
}

TEST(Error, BracesInArgumentsAreText) {
  try {
    raise(ErrorCode::NotFound, "no file '{}'", "{0}{}{{");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no file '{0}{}{{'");
  }
}

TEST(Error, CodesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(ErrorCode::Io); ++i) names.insert(to_string(static_cast<ErrorCode>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(ErrorCode::Io) + 1);
  EXPECT_TRUE(names.contains("resource_exhausted"));
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Error, OfTheSystemSaysWhatAndWhy) {
  const auto code_of = [](int number) {
    try {
      errno = number;
      raise_errno("model.safetensors");
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).rfind("model.safetensors: ", 0), 0u) << error.what();
      return error.code();
    }
    return ErrorCode::InvalidArgument;
  };
  EXPECT_EQ(code_of(ENOENT), ErrorCode::NotFound);
  EXPECT_EQ(code_of(EACCES), ErrorCode::Io);
  EXPECT_EQ(code_of(ENOSPC), ErrorCode::Io);
}

}  // namespace
}  // namespace kilin

#include "core/error.h"

#include <gtest/gtest.h>

namespace kilin {
namespace {

TEST(Error, CarriesItsCodeAndTheFormattedMessage) {
  try {
    raise(ErrorCode::Corrupt, "{}: {} of {}", "file", 3, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    EXPECT_STREQ(error.what(), "file: 3 of 4");
  }
}

TEST(Printable, KeepsAMessageOnOneLineAndShort) {
  EXPECT_EQ(printable("model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(printable("a\nb\x1b[2J\x7f"), "a?b?[2J?");
  EXPECT_EQ(printable(std::string(1000, 'x')), std::string(120, 'x') + "...");
  std::string wide = std::string(119, 'x') + "\xe9\xba\x92 and more";  // a character across the cut goes whole
  EXPECT_EQ(printable(wide), std::string(119, 'x') + "...");
}

}  // namespace
}  // namespace kilin

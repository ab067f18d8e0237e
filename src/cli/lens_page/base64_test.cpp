#include "cli/lens_page/base64.h"

#include <gtest/gtest.h>

namespace kilin::cli {
namespace {

std::string of(std::string_view text) { return base64(std::as_bytes(std::span(text.data(), text.size()))); }

TEST(Base64, IsThatOfTheStandardsExamples) {
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("foob"), "Zm9vYg==");
  EXPECT_EQ(of("fooba"), "Zm9vYmE=");
  EXPECT_EQ(of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(of("\xff\xfe\xfd\xfb"), "//79+w==");
}

}  // namespace
}  // namespace kilin::cli

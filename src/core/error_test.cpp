#include "core/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace kilin {
namespace {

TEST(Error, CarriesItsCodeAndTheFormattedMessage) {
  try {
    raise(ErrorCode::Corrupt, "{}: '{}' is {}; expected {}", "config.json", "hidden_size", -1, "a positive number");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    EXPECT_STREQ(error.what(), "config.json: 'hidden_size' is -1; expected a positive number");
  }
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

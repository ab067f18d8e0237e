#include "text/tiktoken_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_tiktoken(text, "tiktoken.model");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    return error.what();
  }
  return "no error";
}

TEST(TiktokenFile, GivesTheBytesByRankWhateverTheOrderOfLines) {
  const auto tokens = parse_tiktoken("YWI= 1\nAA== 0\r\n\nYWJj 2", "x");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[0], std::string(1, '\0'));
  EXPECT_EQ(tokens[1], "ab");
  EXPECT_EQ(tokens[2], "abc");
}

TEST(TiktokenFile, NamesTheLineAndWhatIsWrongWithIt) {
  EXPECT_EQ(error_of(""), "tiktoken.model: holds no tokens");
  EXPECT_EQ(error_of("AA== 0\nnonsense"), "tiktoken.model:2: 'nonsense' is not a token in base64, a space and a rank");
  for (const char* bad : {"A", "AA", "AA=", "A===", "====", "A=A=", "AA==AA==", "!A==", "AB==", "YWF=", "YW\x80=", ""})
    EXPECT_EQ(error_of(std::string("AA== 0\n") + bad + " 1").substr(0, 18), "tiktoken.model:2: ") << bad;
  for (const char* bad : {"", "x", "-1", "+1", "1x", "1 ", " 1", "1.0", "99999999999999999999"})
    EXPECT_NE(error_of(std::string("AA== 0\nAQ== ") + bad).find("' is not a number"), std::string::npos) << bad;
  EXPECT_EQ(error_of("AA== 0\nAQ== 0"), "tiktoken.model:2: rank 0 stands twice");
  EXPECT_EQ(error_of("AA== 0\nAQ== 2"), "tiktoken.model:2: rank 2 in a file of 2 tokens; the ranks must be 0 to 1, each once");
}

TEST(TiktokenFile, ALongOrBinaryLineIsQuotedInPart) {
  const std::string message = error_of(std::string(1000, '\x01'));
  EXPECT_LT(message.size(), 200u);
  EXPECT_EQ(message.find('\x01'), std::string::npos);
}

TEST(TiktokenFile, RefusesAFileFarBeyondAnyTokeniser) {
  testing::TemporaryFolder folder;
  std::ofstream(folder / "tiktoken.model") << "AA== 0\n";
  std::filesystem::resize_file(folder / "tiktoken.model", size_t{1} << 33);  // sparse
  try {
    read_tiktoken(folder / "tiktoken.model");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Unsupported);
  }
}

}  // namespace
}  // namespace kilin

#include "core/json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

std::string nested(size_t levels, const std::string& open, const std::string& inside, const std::string& close) {
  std::string text;
  for (size_t i = 0; i < levels; ++i) text += open;
  text += inside;
  for (size_t i = 0; i < levels; ++i) text += close;
  return text;
}

// The message of the error that `text` gives, which must be Corrupt and name its source.
std::string refusal(std::string_view text) {
  try {
    parse_json(text, "config.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt) << error.what();
    EXPECT_EQ(std::string(error.what()).rfind("config.json: ", 0), 0u) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 60);
  return "";
}

TEST(Json, ReadsEveryKindOfValue) {
  const Json json =
      parse_json(R"( {"a": [1, -2.5e3, true, null], "b": {"c": "\u00e9\ud83d\ude00"}, "": 18446744073709551615} )", "x");
  EXPECT_EQ(json["a"][0], 1);
  EXPECT_EQ(json["a"][1], -2500.0);
  EXPECT_EQ(json["a"][2], true);
  EXPECT_TRUE(json["a"][3].is_null());
  EXPECT_EQ(json["b"]["c"], "\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(json[""], UINT64_MAX);
  EXPECT_EQ(parse_json("7", "x"), 7);
}

TEST(Json, RefusesAKeyThatStandsTwice) {
  EXPECT_NE(refusal(R"({"hidden_size": 1, "hidden_size": 2})").find("'hidden_size' stands twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"a\n\u001b[2J\u009b": 1, "a\n\u001b[2J\u009b": 2})").find("'a??[2J?' stands twice"), std::string::npos);
  const std::string wide(5000, 'k');
  EXPECT_LT(refusal("{\"" + wide + "\": 1, \"" + wide + "\": 1}").size(), 250u);
  refusal(R"([{"a": {"b": 1, "c": {}, "b": 1}}])");
  refusal(R"({"a": 1, "\u0061": 2})");
  EXPECT_EQ(parse_json(R"({"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": 1}})", "x")["b"]["a"], 1)
      << "other objects may have it";
}

TEST(Json, NestsTo64LevelsAndNoDeeper) {
  EXPECT_TRUE(parse_json(nested(64, "[", "", "]"), "x").is_array());
  EXPECT_TRUE(parse_json(nested(63, "{\"a\":", "{}", "}"), "x").is_object());
  EXPECT_NE(refusal(nested(65, "[", "", "]")).find("64 levels"), std::string::npos);
  refusal(nested(64, "{\"a\":", "{}", "}"));
}

TEST(Json, AMillionLevelsAreRefusedAndNoOverflowOfTheStack) {
  refusal(nested(1'000'000, "[", "", "]"));
  refusal(nested(1'000'000, "{\"a\":", "1", "}"));
  refusal(std::string(1'000'000, '['));
}

TEST(Json, RefusesWhatBreaksOff) {
  const std::string whole = R"({"a": [1.5, "x\u00e9", {"b": null}], "c": true})";
  for (size_t length = 0; length < whole.size(); ++length) refusal(std::string_view(whole).substr(0, length));
  EXPECT_TRUE(parse_json(whole, "x").is_object());
}

TEST(Json, RefusesWhatIsNoJson) {
  for (const char* text :
       {"{} {}",   "[1,]",  "{\"a\":1,}", "[01]",  "[+1]",    "[.5]",   "[1.]",    "[NaN]",       "[Infinity]",
        "{'a':1}", "{a:1}", "// x\n1",    "/**/1", "[1e999]", "\"\t\"", "\"\\x\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
        "nul",     ","})
    refusal(text);
}

TEST(Json, QuotesOnlyTheBeginningOfANumberThatIsTooLarge) {
  EXPECT_LT(refusal("[" + std::string(5000, '9') + "]").size(), 250u);
}

TEST(Json, RefusesInvalidUtf8) {
  for (const char* text :
       {"\"\xff\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\xe9", "{\"\xfe\":1}"})
    refusal(text);
}

TEST(Json, ANulByteEndsNothing) {
  using namespace std::string_view_literals;
  refusal("{}\0"sv);
  refusal("{}\0 and more"sv);
  refusal("\0"sv);
  refusal("\"a\0b\""sv);
  EXPECT_NE(refusal("[1]\0"sv).find("byte 4"), std::string::npos);
}

TEST(Json, TellsThePlaceAndWhatWasExpected) {
  const auto expect = [](std::string_view text, std::string_view place, std::string_view expected) {
    const std::string message = refusal(text);
    EXPECT_NE(message.find(place), std::string::npos) << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    for (const char* theirs : {"json.exception", "parse error", "syntax error", "literal", "last read"})
      EXPECT_EQ(message.find(theirs), std::string::npos) << message;
  };
  expect("{\n  \"a\": 1,\n  b\n}", "line 3, column 3 (byte 15)", "a key in double quotes");
  expect("{\n  \"a\": 1e999\n}", "line 2, column 12 (byte 14)", "the number 1e999; expected one that");
  expect("{\"a\": [\"1e999\", -1e999]}", "line 1, column 22 (byte 22)", "the number -1e999");
  expect("{\"a\" 1}", "column 6", "a colon after the key");
  expect("[1 2]", "column 4", "a comma or ']'");
  expect("{\"a\": 1 \"b\": 2}", "column 11", "a comma or '}'");
  expect("[1", "column 3 (byte 3), where it breaks off", "a comma or ']'");
  expect("{\"a\": ", "where it breaks off", "a value");
  expect("[nul]", "line 1", "a value");
  expect("{} {}", "column 4", "nothing after the end");
  expect("", "line 1, column 1 (byte 1), where it breaks off", "a value");
}

TEST(Json, OfAFileNamesTheFile) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "bad.json") << "{\"a\": ";
  try {
    read_json(folder / "bad.json");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    EXPECT_NE(std::string(error.what()).find((folder / "bad.json").string()), std::string::npos) << error.what();
  }
  EXPECT_THROW(read_json(folder / "missing.json"), Error);
}

}  // namespace
}  // namespace kilin

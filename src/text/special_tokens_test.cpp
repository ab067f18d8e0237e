#include "text/special_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace kilin {
namespace {

SpecialTokens tokens_named(const std::vector<std::string>& names) {
  std::vector<SpecialToken> tokens;
  tokens.reserve(names.size());
  for (const std::string& name : names) tokens.push_back({100 + static_cast<int32_t>(tokens.size()), name});
  return {tokens, 100, "x"};
}

// The published model, whose ranks end at 163584.
TEST(SpecialTokens, ThePublishedOnesStandAtTheirPlaces) {
  const SpecialTokens specials(published_special_tokens(163584), 163584, "x");
  EXPECT_EQ(specials.size(), 256u);
  const std::vector<std::pair<const char*, int32_t>> table = {
      {"[BOS]", 163584},
      {"[EOS]", 163585},
      {"<|im_end|>", 163586},
      {"<|im_user|>", 163587},
      {"<|im_assistant|>", 163588},
      {"[EOT]", 163593},
      {"<|im_system|>", 163594},
      {"<|tool_calls_section_begin|>", 163595},
      {"<|tool_calls_section_end|>", 163596},
      {"<|tool_call_begin|>", 163597},
      {"<|tool_call_argument_begin|>", 163598},
      {"<|tool_call_end|>", 163599},
      {"<|im_middle|>", 163601},
      {"[UNK]", 163838},
      {"[PAD]", 163839},
      {"<|reserved_token_163600|>", 163600},
  };
  for (const auto& [name, id] : table) {
    EXPECT_EQ(specials.find(name), id) << name;
    EXPECT_EQ(specials.name(id), name);
  }
  EXPECT_FALSE(specials.find("<|im_start|>"));
}

TEST(SpecialTokens, TheLeftmostIsFoundAndTheLongestOfThoseThatBeginThere) {
  const SpecialTokens specials = tokens_named({"<a>", "<a><b>", "b>", "<ab"});
  const auto found = [&](std::string_view text, size_t from = 0) { return specials.next_in(text, from); };
  EXPECT_EQ(found("x<a><b>")->id, 101);
  EXPECT_EQ(found("x<a><b>")->begin, 1u);
  EXPECT_EQ(found("x<a><b>")->end, 7u);
  EXPECT_EQ(found("x<a><c>")->id, 100);
  EXPECT_EQ(found("x<a><c>")->end, 4u);
  EXPECT_EQ(found("<a<b>")->id, 102) << "what began a name and broke off may hold another";
  EXPECT_EQ(found("<a><b>", 1)->id, 102);
  EXPECT_FALSE(found("<a"));
  EXPECT_FALSE(found(""));
  EXPECT_FALSE(found("<a>", 3));
}

TEST(SpecialTokens, AMegabyteOfBeginningsIsSearchedInLinearTime) {
  const SpecialTokens specials(published_special_tokens(0), 0, "x");
  std::string text;
  while (text.size() < 1'000'000) text += "<|reserved_token_";
  EXPECT_FALSE(specials.next_in(text, 0));
}

std::vector<SpecialToken> read(const std::string& json) { return parse_special_tokens(json, "tokenizer_config.json", 1000); }

std::string error_of(const std::string& json) {
  try {
    SpecialTokens(read(json), 1000, "x");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    return error.what();
  }
  return "no error";
}

TEST(TokenizerConfig, NamesTheTokensAndTheRestOfThe256AreReserved) {
  const auto tokens =
      read(R"({"added_tokens_decoder": {"1002": {"content": "<|im_end|>"}, "1000": {"content": "<s>", "special": true}}})");
  ASSERT_EQ(tokens.size(), 256u);
  EXPECT_EQ(tokens[0].name, "<s>");
  EXPECT_EQ(tokens[1].name, "<|reserved_token_1001|>");
  EXPECT_EQ(tokens[2].name, "<|im_end|>");
  EXPECT_EQ(tokens[255].id, 1255);
}

TEST(TokenizerConfig, MayNameTokensBeyondThe256) {
  const auto tokens = read(R"({"added_tokens_decoder": {"1300": {"content": "<|extra|>"}}})");
  ASSERT_EQ(tokens.size(), 301u);
  EXPECT_EQ(tokens[300].name, "<|extra|>");
}

TEST(TokenizerConfig, WithoutADecoderHasThePublishedTokens) {
  EXPECT_EQ(read(R"({"bos_token": "[BOS]"})")[3].name, "<|im_user|>");
}

TEST(TokenizerConfig, IsRefusedByNameWhereItMakesNoSense) {
  const auto says = [&](const std::string& json, const std::string& what) {
    const std::string error = error_of(json);
    EXPECT_NE(error.find(what), std::string::npos) << json << ": " << error;
  };
  says("[]", "is a JSON array; expected an object");
  says("{", "not valid JSON");
  says(R"({"added_tokens_decoder": 3})", "added_tokens_decoder is a JSON number; expected an object");
  for (const char* key : {"x", "", "-1", "+1001", "1001 ", "01001", "1e3", "99999999999999999999999"})
    says(fmt::format(R"({{"added_tokens_decoder": {{"{}": {{"content": "a"}}}}}})", key),
         fmt::format("key '{}' is not a token id", key));
  says(R"({"added_tokens_decoder": {"999": {"content": "a"}}})",
       "id 999 is a token of tiktoken.model; special tokens begin at 1000");
  says(R"({"added_tokens_decoder": {"4294967296": {"content": "a"}}})", "id 4294967296 is out of range");
  says(R"({"added_tokens_decoder": {"66536": {"content": "a"}}})", "id 66536 is out of range");
  for (const char* entry : {"3", "{}", R"({"content": 3})", "null", R"(["content"])"})
    says(fmt::format(R"({{"added_tokens_decoder": {{"1000": {}}}}})", entry), "1000 has no string 'content'");
  says(R"({"added_tokens_decoder": {"1000": {"content": ""}}})",
       "the name of special token 1000 has 0 bytes; expected 1 to 256");
  says(fmt::format(R"({{"added_tokens_decoder": {{"1000": {{"content": "{}"}}}}}})", std::string(257, 'a')), "has 257 bytes");
  says(R"({"added_tokens_decoder": {"1000": {"content": "a"}, "1003": {"content": "a"}}})",
       "special tokens 1000 and 1003 are both named 'a'");
  says(R"({"added_tokens_decoder": {"1000": {"content": "a"}, "1000": {"content": "b"}}})", "key '1000' stands twice");
  says(R"({"added_tokens_decoder": {"1000": {"content": "<|reserved_token_1001|>"}}})", "1000 and 1001 are both named");
}

TEST(SpecialTokens, IdsMustFollowOn) {
  EXPECT_THROW(SpecialTokens({{100, "a"}, {102, "b"}}, 100, "x"), Error);
  EXPECT_THROW(SpecialTokens({{101, "a"}}, 100, "x"), Error);
  EXPECT_THROW(SpecialTokens({{100, "\xff"}}, 100, "x"), Error);
}

}  // namespace
}  // namespace kilin

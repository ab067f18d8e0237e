#include "text/tool_call_parser.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/random.h"
#include "support/golden.h"
#include "support/tokens.h"
#include "text/chat_format.h"
#include "text/utf8.h"

namespace kilin {
namespace {

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = Tokenizer::load(testing::in_repository("models/tiny"));
  return tokenizer;
}

struct Parsed {
  std::string text;  // all text, with a bar in place of each call
  std::vector<ToolCall> calls;
};

Parsed parse(const std::vector<int32_t>& ids, const Tokenizer& tokenizer = tiny()) {
  ToolCallParser parser(tokenizer);
  Parsed parsed;
  const auto take = [&](const std::vector<OutputPart>& parts) {
    for (const OutputPart& part : parts) {
      if (const auto* call = std::get_if<ToolCall>(&part)) {
        parsed.calls.push_back(*call);
        parsed.text += "|";
      } else {
        EXPECT_FALSE(std::get<std::string>(part).empty());
        EXPECT_FALSE(first_invalid_utf8(std::get<std::string>(part)));
        parsed.text += std::get<std::string>(part);
      }
    }
  };
  for (int32_t id : ids) take(parser.push(id));
  take(parser.finish());
  EXPECT_EQ(parser.calls(), parsed.calls.size());
  return parsed;
}

// Short names for the markers.
Parsed parse_text(std::string text) {
  const std::vector<std::pair<std::string, std::string>> names = {{"{S}", "<|tool_calls_section_begin|>"},
                                                                  {"{/S}", "<|tool_calls_section_end|>"},
                                                                  {"{C}", "<|tool_call_begin|>"},
                                                                  {"{A}", "<|tool_call_argument_begin|>"},
                                                                  {"{/C}", "<|tool_call_end|>"}};
  for (const auto& [name, marker] : names)
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) text.replace(at, name.size(), marker);
  return parse(tiny().encode_with_specials(text));
}

TEST(ToolCallParser, TellsTextFromCalls) {
  const Parsed parsed =
      parse_text(R"(I look. {S}{C}functions.wetter:0{A}{"city": "München"}{/C}{C}functions.zeit:1{A}{}{/C}{/S})");
  EXPECT_EQ(parsed.text, "I look. ||");
  EXPECT_EQ(parsed.calls, (std::vector<ToolCall>{{"functions.wetter:0", "wetter", R"({"city": "München"})"},
                                                 {"functions.zeit:1", "zeit", "{}"}}));
}

TEST(ToolCallParser, ReadsBackWhatTheChatFormatWrites) {
  const std::vector<ToolCall> calls = {{"functions.a:0", "a", "{\"x\": [1, 2]}"}, {"functions.b.c:1", "b.c", "not json"}};
  const auto header = ChatFormat(tiny()).encode({});
  auto ids = ChatFormat(tiny()).encode({{.role = Role::Assistant, .content = "Well:", .tool_calls = calls}}, ChatEnd::Nothing);
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(header.size()));
  const Parsed parsed = parse(ids);
  EXPECT_EQ(parsed.text, "Well:||");
  EXPECT_EQ(parsed.calls, calls);
}

TEST(ToolCallParser, NamesOfMarkersSpelledOutAreText) {
  const std::string text =
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{}<|tool_call_end|>";
  const Parsed parsed = parse(tiny().encode(text));
  EXPECT_EQ(parsed.text, text);
  EXPECT_TRUE(parsed.calls.empty());
}

TEST(ToolCallParser, TextIsGivenAsSoonAsItIsCertain) {
  ToolCallParser parser(tiny());
  EXPECT_EQ(parser.push('a'), (std::vector<OutputPart>{std::string("a")}));
  EXPECT_TRUE(parser.push(0xc3).empty());
  EXPECT_EQ(parser.push(0xa9), (std::vector<OutputPart>{std::string("é")}));
  EXPECT_TRUE(parser.finish().empty());
}

TEST(ToolCallParser, ForgivesSpacesAndMissingPartsOfTheId) {
  const Parsed parsed = parse_text("{S}\n {C} functions.a:0 {A}{}{/C}\n{C}b:7{A}{}{/C}\n{C}functions.c{A}{}{/C}\n{/S}\n");
  EXPECT_EQ(parsed.text, "|||\n") << "white space between calls is none of the model's words";
  EXPECT_EQ(parsed.calls,
            (std::vector<ToolCall>{{"functions.a:0", "a", "{}"}, {"b:7", "b", "{}"}, {"functions.c", "c", "{}"}}));
}

TEST(ToolCallParser, AMissingEndIsForgivenWhenTheArgumentsAreWhole) {
  for (const char* text :
       {"{S}{C}functions.a:0{A}{\"x\": 1}{/S}", "{S}{C}functions.a:0{A}{\"x\": 1}", "{C}functions.a:0{A}{\"x\": 1}{/C}"}) {
    const Parsed parsed = parse_text(text);
    EXPECT_EQ(parsed.text, "|") << text;
    EXPECT_EQ(parsed.calls, (std::vector<ToolCall>{{"functions.a:0", "a", "{\"x\": 1}"}})) << text;
  }
  EXPECT_EQ(parse_text("{S}{C}functions.a:0{A}{}{C}functions.b:1{A}{}{/C}{/S}").calls.size(), 2u);
}

TEST(ToolCallParser, WhatIsNoCallStaysAsText) {
  EXPECT_EQ(parse_text("a{S}{C}functions.a:0{A}{\"x\": ").text,
            "a<|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{\"x\": ");
  EXPECT_EQ(parse_text("a{S}{C}functions.a").text, "a<|tool_call_begin|>functions.a");
  EXPECT_EQ(parse_text("{S}{C}functions.a:0{/C}{/S}b").text, "<|tool_call_begin|>functions.a:0<|tool_call_end|>b");
  EXPECT_EQ(parse_text("{S}{C}functions.:0{A}{}{/C}{/S}").text,
            "<|tool_call_begin|>functions.:0<|tool_call_argument_begin|>{}<|tool_call_end|>");
  EXPECT_EQ(parse_text("{S}some words {/S} and more").text, "some words  and more");
  EXPECT_EQ(parse_text("{/C}{A}{/S}x{A}y").text, "xy") << "stray markers leave no trace";
  for (const char* text : {"{S}{C}functions.a", "{S}{C}functions.a:0{/C}"}) EXPECT_TRUE(parse_text(text).calls.empty()) << text;
}

TEST(ToolCallParser, NoOrderOfTokensLosesWords) {
  const std::vector<int32_t> alphabet = tiny().encode_with_specials(
      "<|tool_calls_section_begin|><|tool_calls_section_end|><|tool_call_begin|><|tool_call_argument_begin|><|tool_call_end|>["
      "EOS]");
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::vector<int32_t> ids;
    std::string letters;  // in the order written
    for (uint64_t i = 0; i < 12; ++i) {
      const uint64_t draw = random_bits(seed, i) % (alphabet.size() + 4);
      if (draw < alphabet.size()) {
        ids.push_back(alphabet[draw]);
      } else {
        ids.push_back(static_cast<int32_t>('A' + i));
        letters += static_cast<char>('A' + i);
      }
    }
    ToolCallParser parser(tiny());
    std::string all;
    const auto take = [&](const std::vector<OutputPart>& parts) {
      for (const OutputPart& part : parts) {
        const auto* call = std::get_if<ToolCall>(&part);
        all += call != nullptr ? call->id + call->arguments : std::get<std::string>(part);
      }
    };
    for (int32_t id : ids) take(parser.push(id));
    take(parser.finish());
    std::erase_if(all, [](char c) { return c < 'A' || c > 'Z'; });
    ASSERT_EQ(all, letters) << "seed " << seed;
  }
}

TEST(ToolCallParser, HalfACharacterBeforeAMarkerIsReplaced) {
  std::vector<int32_t> ids = {0xe4};
  for (int32_t id : tiny().encode_with_specials("<|tool_calls_section_begin|>")) ids.push_back(id);
  EXPECT_EQ(parse(ids).text, "\xef\xbf\xbd");
}

TEST(ToolCallParser, WithoutTheTokensAllIsText) {
  const Tokenizer plain(testing::single_bytes_and(), {{256, "<|end|>"}}, "x");
  EXPECT_EQ(parse({'h', 'i', 256, '!'}, plain).text, "hi!");
  ToolCallParser parser(plain);
  EXPECT_THROW(parser.push(257), Error);
  EXPECT_THROW(parser.push(-1), Error);
}

}  // namespace
}  // namespace kilin

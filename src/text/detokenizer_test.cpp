#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/random.h"
#include "support/tokens.h"
#include "text/utf8.h"

namespace kilin {
namespace {

// A tokeniser of single bytes and one special token, so that ids can spell any bytes.
const Tokenizer& bytes() {
  // Token 256 holds the end of one character and one whole character.
  static const Tokenizer tokenizer(testing::single_bytes_and({"\x98\x80!"}), {{257, "<|end|>"}}, "x");
  return tokenizer;
}

int32_t id_of(char c) { return static_cast<unsigned char>(c); }

const std::string kReplacement = "\xef\xbf\xbd";

TEST(StreamingDetokenizer, NeverGivesHalfACharacterWhereverTheTextIsCut) {
  const std::string text = "aé中😀\u0301\U0010ffff!\n\x01z";
  StreamingDetokenizer detokenizer(bytes());
  std::string all;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string given = detokenizer.push(id_of(text[i]));
    EXPECT_FALSE(first_invalid_utf8(given)) << "byte " << i;
    all += given;
    EXPECT_EQ(all, text.substr(0, all.size()));
    EXPECT_LT(i + 1 - all.size(), 4u) << "more waits than a character has";
    if (i + 1 == text.size() || utf8_unit(text, all.size()).bytes + all.size() > i + 1) continue;
    ADD_FAILURE() << "a whole character waits at byte " << i;
  }
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(all, text);
}

TEST(StreamingDetokenizer, ATokenMayEndOneCharacterAndHoldOthers) {
  StreamingDetokenizer detokenizer(bytes());
  EXPECT_EQ(detokenizer.push(0xf0), "");
  EXPECT_EQ(detokenizer.push(0x9f), "");
  EXPECT_EQ(detokenizer.push(256), "😀!");
}

TEST(StreamingDetokenizer, WhatIsBrokenBecomesAReplacementCharacterAtOnce) {
  StreamingDetokenizer detokenizer(bytes());
  EXPECT_EQ(detokenizer.push(0xff), kReplacement);
  EXPECT_EQ(detokenizer.push(0xe4), "");
  EXPECT_EQ(detokenizer.push('a'), kReplacement + "a");
  EXPECT_EQ(detokenizer.push(0xe4), "");
  EXPECT_EQ(detokenizer.finish(), kReplacement);
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(detokenizer.push('b'), "b");
}

TEST(StreamingDetokenizer, AnyBytesGiveWhatReplacingThemInOneGives) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    StreamingDetokenizer detokenizer(bytes());
    std::string raw, all;
    for (uint64_t i = 0; i < 30; ++i) {
      const uint64_t bits = random_bits(seed, i);
      // Lead and continuation bytes, more often than chance would draw them.
      const auto id = static_cast<int32_t>(bits % 3 == 0   ? 0x80 + (bits >> 8) % 64
                                           : bits % 3 == 1 ? 0xe0 + (bits >> 8) % 24
                                                           : (bits >> 8) % 257);
      raw += bytes().token_bytes(id);
      const std::string given = detokenizer.push(id);
      ASSERT_FALSE(first_invalid_utf8(given));
      all += given;
    }
    ASSERT_EQ(all + detokenizer.finish(), replace_broken_utf8(raw)) << "seed " << seed;
  }
}

TEST(StreamingDetokenizer, SpecialTokensAreSkippedOrShown) {
  StreamingDetokenizer skips(bytes(), Specials::Skip), shows(bytes(), Specials::Show);
  for (StreamingDetokenizer* detokenizer : {&skips, &shows}) EXPECT_EQ(detokenizer->push(0xc3), "");
  EXPECT_EQ(skips.push(257), "");
  EXPECT_EQ(shows.push(257), kReplacement + "<|end|>");
  EXPECT_EQ(skips.push(0xa9), "é") << "as if the special token had not been there";
  EXPECT_EQ(shows.push(0xa9), kReplacement);
}

TEST(StreamingDetokenizer, AnIdThatIsNoTokenIsRefusedAndChangesNothing) {
  StreamingDetokenizer detokenizer(bytes());
  detokenizer.push(0xc3);
  EXPECT_THROW(detokenizer.push(258), Error);
  EXPECT_THROW(detokenizer.push(-1), Error);
  EXPECT_EQ(detokenizer.push(0xa9), "é");
}

}  // namespace
}  // namespace kilin

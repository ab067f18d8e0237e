#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>
#include <unicode/regex.h>

#include <memory>
#include <string>
#include <vector>

#include "core/random.h"

namespace kilin {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(std::string_view text) {
  Pieces pieces;
  PreTokenizer scanner(text);
  while (const auto piece = scanner.next()) pieces.emplace_back(*piece);
  return pieces;
}

// The pattern in ICU's syntax, which also has && for intersections.
constexpr const char* kPattern =
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

class IcuSplitter {
 public:
  IcuSplitter() {
    UErrorCode status = U_ZERO_ERROR;
    pattern_.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(kPattern), 0, status));
    EXPECT_TRUE(U_SUCCESS(status)) << u_errorName(status);
  }

  // Text between matches also counts as a piece, so that a pattern that does not cover the text is noticed.
  Pieces split(const std::string& utf8) const {
    UErrorCode status = U_ZERO_ERROR;
    const icu::UnicodeString text = icu::UnicodeString::fromUTF8(utf8);
    const std::unique_ptr<icu::RegexMatcher> matcher(pattern_->matcher(text, status));
    Pieces pieces;
    int32_t at = 0;
    const auto add = [&](int32_t begin, int32_t end) {
      if (begin < end) text.tempSubStringBetween(begin, end).toUTF8String(pieces.emplace_back());
    };
    while (matcher->find(status)) {
      add(at, matcher->start(status));
      add(matcher->start(status), matcher->end(status));
      at = matcher->end(status);
    }
    add(at, text.length());
    EXPECT_TRUE(U_SUCCESS(status)) << u_errorName(status);
    return pieces;
  }

 private:
  std::unique_ptr<icu::RegexPattern> pattern_;
};

std::string joined(const Pieces& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += "[" + piece + "]";
  return text;
}

std::string utf8(char32_t c) {
  std::string text;
  icu::UnicodeString(static_cast<UChar32>(c)).toUTF8String(text);
  return text;
}

TEST(PreTokenizer, CutsWordsNumbersSymbolsAndSpacesApart) {
  EXPECT_EQ(split("Hello, world!"), (Pieces{"Hello", ",", " world", "!"}));
  EXPECT_EQ(split("12345678"), (Pieces{"123", "456", "78"}));
  EXPECT_EQ(split("a  b"), (Pieces{"a", " ", " b"}));
  EXPECT_EQ(split("a   "), (Pieces{"a", "   "}));
  EXPECT_EQ(split("x \n\n y"), (Pieces{"x", " \n\n", " y"}));
  EXPECT_EQ(split("x \n  \t1"), (Pieces{"x", " \n", "  ", "\t", "1"}));
  EXPECT_EQ(split("a...\r\n\nb"), (Pieces{"a", "...\r\n\n", "b"}));
  EXPECT_EQ(split("中文abc漢"), (Pieces{"中文", "abc", "漢"}));
  EXPECT_EQ(split(""), Pieces{});
}

TEST(PreTokenizer, AWordTakesItsContractionInAnyCase) {
  EXPECT_EQ(split("don't"), (Pieces{"don't"}));
  EXPECT_EQ(split("I'LL"), (Pieces{"I'LL"}));
  EXPECT_EQ(split("we'Ve"), (Pieces{"we'Ve"}));
  EXPECT_EQ(split("it'sx"), (Pieces{"it's", "x"}));
  EXPECT_EQ(split("a'lx"), (Pieces{"a", "'lx"}));
  EXPECT_EQ(split("1's"), (Pieces{"1", "'s"}));
  EXPECT_EQ(split("a\u2019s"), (Pieces{"a", "\u2019s"})) << "a typographic apostrophe is none";
}

// Simple case folding maps U+017F to s. K (U+212A) folds to k, which no contraction contains, and the ligature U+FB05 folds to
// "st" only in full folding.
TEST(PreTokenizer, LongSIsAnSInAContraction) {
  EXPECT_EQ(split("a'\u017fb"), (Pieces{"a'\u017f", "b"}));
  EXPECT_EQ(split("a'\u212a"), (Pieces{"a", "'\u212a"}));
  EXPECT_EQ(split("a'\ufb05"), (Pieces{"a", "'\ufb05"}));
}

TEST(PreTokenizer, UpperCaseGivesBackUntilALowerCaseCanFollow) {
  EXPECT_EQ(split("ABCdef"), (Pieces{"ABCdef"}));
  EXPECT_EQ(split("abcDef"), (Pieces{"abc", "Def"}));
  EXPECT_EQ(split("ABC"), (Pieces{"ABC"}));
  EXPECT_EQ(split("AかBC"), (Pieces{"Aか", "BC"}));
  EXPECT_EQ(split("e\u0301A"), (Pieces{"e\u0301", "A"}));
  EXPECT_EQ(split("\u0301A"), (Pieces{"\u0301", "A"})) << "the mark does as a word without its leading character";
}

// Characters from the borders of the pattern's classes, so that short random strings hit every alternative.
const std::vector<std::u32string> kPalette = {
    U"  \t\u00a0\u3000\u1680\u0085\u2028",  // white space, and newlines other than \r and \n
    U"\n\r\n\r",
    U"'''’",
    U"sStTmMdDrRvVlLeE\u017f\u212a",
    U"aZé\u01c5ßΩжЖ",
    U"\u02b0\u00aaかאश한々",          // Lm, Lo; the last is Han
    U"\u0301\u0903\u20dd\U00016ff0",  // marks; the last is Han
    U"中漢〇⺀\U00020000〡",
    U"0129½Ⅷ\u0663\uff15",
    U"!?.,-_#€😀\u200b\u200d\x1c\x01\ue000\U000e0001",
};

TEST(PreTokenizer, AgreesWithIcuOnRandomTextOfAllClasses) {
  const IcuSplitter icu;
  uint64_t counter = 0;
  const auto below = [&](size_t n) { return static_cast<size_t>(random_bits(1, counter++) % n); };
  for (int round = 0; round < 30000; ++round) {
    std::string text;
    const size_t groups = 1 + below(3);  // few classes at a time, so that runs get long
    std::vector<const std::u32string*> chosen;
    for (size_t i = 0; i < groups; ++i) chosen.push_back(&kPalette[below(kPalette.size())]);
    for (size_t n = 1 + below(round % 2 == 0 ? 8 : 40); n > 0; --n) {
      const std::u32string& group = below(8) == 0 ? kPalette[below(kPalette.size())] : *chosen[below(groups)];
      text += utf8(group[below(group.size())]);
    }
    ASSERT_EQ(joined(split(text)), joined(icu.split(text))) << text;
  }
}

TEST(PreTokenizer, AgreesWithIcuOnRandomTextOfAllCodePoints) {
  const IcuSplitter icu;
  uint64_t counter = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (int i = 0; i < 20; ++i) {
      const uint64_t bits = random_bits(2, counter++);
      const char32_t limit = bits % 3 == 0 ? 0x110000 : bits % 3 == 1 ? 0x3000 : 0x80;
      const auto c = static_cast<char32_t>((bits >> 8) % limit);
      if (c < 0xd800 || c > 0xdfff) text += utf8(c);
    }
    ASSERT_EQ(joined(split(text)), joined(icu.split(text))) << text;
  }
}

// All short strings over one representative of every kind, so that nothing depends on a random draw.
TEST(PreTokenizer, AgreesWithIcuOnEveryShortString) {
  const IcuSplitter icu;
  const std::u32string kinds = U" \n\t'saAか\u0301中1!";
  std::vector<std::string> texts = {""};
  for (int length = 1; length <= 4; ++length) {
    std::vector<std::string> longer;
    for (const std::string& text : texts)
      for (char32_t c : kinds) longer.push_back(text + utf8(c));
    texts = std::move(longer);
    for (const std::string& text : texts) ASSERT_EQ(joined(split(text)), joined(icu.split(text))) << text;
  }
}

// A quadratic scanner would run for hours here; a recursive one would overflow its stack.
TEST(PreTokenizer, TakesAMegabyteOfAnything) {
  for (const char* unit :
       {"a",   "A",   " ",       "\n",  "'",  "1",  "!",   "\t", "\u0301", "か",    "中", "Aa",  "aA",
        "Aか", "かA", "\u0301A", " \n", " a", "a'", "a's", "! ", "!\n",    "\r\n ", "1a", "中a", "'\u0301"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    for (const char* tail : {"", "x", " ", "\n"}) {
      size_t bytes = 0;
      const std::string whole = text + tail;
      PreTokenizer scanner(whole);
      while (const auto piece = scanner.next()) bytes += piece->size();
      EXPECT_EQ(bytes, whole.size()) << unit;
    }
  }
}

}  // namespace
}  // namespace kilin

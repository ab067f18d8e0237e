#include "text/text_cuts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kilin {
namespace {

// Lengths of the parts in bytes. Checks that the parts together are the text.
std::vector<size_t> lengths(const std::string& text) {
  std::vector<size_t> lengths;
  std::string all;
  TextCuts cuts(text);
  while (const auto part = cuts.next()) {
    lengths.push_back(part->size());
    all += *part;
  }
  EXPECT_EQ(all, text);
  return lengths;
}

std::string repeat(const std::string& unit, size_t times) {
  std::string text;
  while (times-- > 0) text += unit;
  return text;
}

using Lengths = std::vector<size_t>;

TEST(TextCuts, ShortTextIsOnePart) {
  EXPECT_EQ(lengths(""), Lengths{});
  EXPECT_EQ(lengths("a b"), Lengths{3});
}

TEST(TextCuts, ARunIsCutAfterEvery25000Characters) {
  EXPECT_EQ(lengths(repeat("a", 25000)), Lengths{25000});
  EXPECT_EQ(lengths(repeat("a", 25001)), (Lengths{25000, 1}));
  EXPECT_EQ(lengths(repeat(" ", 60000)), (Lengths{25000, 25000, 10000}));
  EXPECT_EQ(lengths(repeat("中", 25001)), (Lengths{75000, 3})) << "characters count, not bytes";
  EXPECT_EQ(lengths(repeat("a", 24999) + " " + repeat("b", 25000)), Lengths{50000}) << "each run is counted for itself";
  EXPECT_EQ(lengths("x " + repeat("a", 25001)), (Lengths{25002, 1})) << "the part before the cut holds what led to the run";
}

TEST(TextCuts, WhatPythonCallsSpaceEndsARun) {
  EXPECT_EQ(lengths(repeat("a", 25000) + "\x1c" + repeat("a", 25000)), Lengths{50001});
  EXPECT_EQ(lengths(repeat("a", 25000) + "\u200b" + repeat("a", 25000)), (Lengths{25000, 3 + 24999, 1}));
}

TEST(TextCuts, EveryStretchOf400000CharactersIsCutForItself) {
  const std::string words = repeat("word ", 100000);  // 500,000
  EXPECT_EQ(lengths(words), (Lengths{400000, 100000}));
  // A run that crosses the border of a stretch is counted anew from there.
  const std::string text = repeat("ab ", 130000) + repeat("a", 10000 + 25000 + 1);
  EXPECT_EQ(lengths(text), (Lengths{400000, 25000, 1}));
}

}  // namespace
}  // namespace kilin

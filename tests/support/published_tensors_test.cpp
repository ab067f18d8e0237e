#include "support/published_tensors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "support/golden.h"

namespace kilin::testing {
namespace {

using Strings = std::vector<std::string>;

TEST(PublishedTensors, RangesAreExpandedInAllCombinations) {
  EXPECT_EQ(expand_ranges("norm"), Strings{"norm"});
  EXPECT_EQ(expand_ranges("a.{0-2,7}.b"), (Strings{"a.0.b", "a.1.b", "a.2.b", "a.7.b"}));
  EXPECT_EQ(expand_ranges("{1,3}.{8-9}"), (Strings{"1.8", "1.9", "3.8", "3.9"}));
}

TEST(PublishedTensors, WhatIsNoRangeIsRefused) {
  for (const char* pattern : {"a.{", "a.{}", "a.{x}", "a.{1-}", "a.{1,}", "a.{1", "a.{1}.{-2}"})
    EXPECT_THROW(expand_ranges(pattern), std::invalid_argument) << pattern;
}

TEST(PublishedTensors, NoLineStandsTwice) {
  std::ifstream in(in_repository("tests/golden/real/tensor_ranges.tsv"));
  size_t texts = 0;
  for (std::string line; std::getline(in, line);) texts += expand_ranges(line).size();
  EXPECT_EQ(texts, 20493u);
  EXPECT_EQ(published_tensors().size(), 20493u);
}

// real/tensors.tsv of the whole set: one line per tensor, made without any weight map.
TEST(PublishedTensors, AreThoseOfTheWholeListLineForLine) {
  GOLDEN_OR_SKIP(path, "real/tensors.tsv");
  std::set<std::string> whole;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) whole.insert(line);
  EXPECT_EQ(published_tensors(), whole);
}

}  // namespace
}  // namespace kilin::testing

#include "engine/stop_strings.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace kilin {
namespace {

struct Shown {
  std::string text;
  bool stopped;
};

// Shows `text` in pieces of `size` bytes.
Shown show(const std::string& text, const std::vector<std::string>& stops, size_t size) {
  StopStrings s(stops);
  std::string out;
  for (size_t at = 0; at < text.size(); at += size) out += s.push(text.substr(at, size));
  out += s.finish();
  return {out, s.stopped()};
}

TEST(StopStrings, EndTheTextBeforeTheFirstOfThemHoweverItIsCut) {
  const std::string text = "one two aab aabc three";
  for (size_t size = 1; size <= text.size(); ++size) {
    EXPECT_EQ(show(text, {"aabc"}, size).text, "one two aab ") << size;
    EXPECT_EQ(show(text, {"three", "two"}, size).text, "one ") << size;
    EXPECT_EQ(show(text, {"threee", "x"}, size).text, text) << size;
    EXPECT_FALSE(show(text, {"threee"}, size).stopped) << size;
    EXPECT_TRUE(show(text, {"e"}, size).stopped) << size;
  }
}

TEST(StopStrings, WhatCannotBecomeOneIsShownAtOnce) {
  StopStrings s({"stop"});
  EXPECT_EQ(s.push("xst"), "x");
  EXPECT_EQ(s.push("a"), "sta");
  EXPECT_EQ(s.push("sto"), "");
  EXPECT_EQ(s.push("p more"), "");
  EXPECT_TRUE(s.stopped());
  EXPECT_EQ(s.push("later"), "");
  EXPECT_EQ(s.finish(), "");
}

TEST(StopStrings, AnEmptyOneIsRefused) { EXPECT_THROW(StopStrings({"a", ""}), Error); }

}  // namespace
}  // namespace kilin

#include "cli/chat/chat_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "core/error.h"

namespace kilin::cli {
namespace {

using Kind = ChatEntry::Kind;

TEST(ChatInput, WhatBeginsWithASlashIsACommand) {
  EXPECT_EQ(parse_chat_entry("Hello / there").kind, Kind::Message);
  EXPECT_EQ(parse_chat_entry(" /reset").kind, Kind::Message);
  EXPECT_EQ(parse_chat_entry("").kind, Kind::Message);
  EXPECT_EQ(parse_chat_entry("/reset").kind, Kind::Reset);
  EXPECT_EQ(parse_chat_entry("/exit ").kind, Kind::Exit);
  EXPECT_EQ(parse_chat_entry("/help").kind, Kind::Help);
}

TEST(ChatInput, ArgumentsAreWhatFollows) {
  EXPECT_EQ(parse_chat_entry("/save my file.json ").text, "my file.json");
  EXPECT_EQ(parse_chat_entry("/load\tx").kind, Kind::Load);
  EXPECT_EQ(parse_chat_entry("/system Be brief.\nAlways.").text, "Be brief.\nAlways.");
  EXPECT_EQ(parse_chat_entry("/system").text, "");
}

TEST(ChatInput, WrongCommandsAreRefused) {
  for (const char* bad : {"/", "/rest", "/resets", "/save", "/load  ", "/reset now", "/exit 1", "/Save x"})
    EXPECT_THROW(parse_chat_entry(bad), Error) << bad;
}

// A reader of a pipe that holds `text` and was closed.
class ReadEntry : public ::testing::Test {
 protected:
  void write(std::string_view text) {
    ASSERT_EQ(pipe(ends_.data()), 0);
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends_[1]);
    reader_.emplace(ends_[0]);
  }
  void TearDown() override { close(ends_[0]); }

  std::vector<std::string> entries() {
    std::vector<std::string> all;
    std::string entry;
    while (read_entry(*reader_, entry, [this] { ++continuations_; }) == LineReader::Result::Line) all.push_back(entry);
    return all;
  }

  std::array<int, 2> ends_{};
  std::optional<LineReader> reader_;
  int continuations_ = 0;
};

TEST_F(ReadEntry, ABackslashAtTheEndGoesOnToTheNextLine) {
  write("one\ntwo\\\nthree\\\n\nfour\\not\n");
  EXPECT_EQ(entries(), (std::vector<std::string>{"one", "two\nthree\n", "four\\not"}));
  EXPECT_EQ(continuations_, 2);
}

TEST_F(ReadEntry, CrlfEndsALineAsLfDoes) {
  write("one\r\ntwo\\\r\nthree\\\r\n\r\nfour\r five\r\nsix\r");
  EXPECT_EQ(entries(), (std::vector<std::string>{"one", "two\nthree\n", "four\r five", "six\r"}));
}

TEST_F(ReadEntry, TheEndMayComeInsideALineOrAnEntry) {
  write("one\ntwo\\\nthree");
  EXPECT_EQ(entries(), (std::vector<std::string>{"one", "two\nthree"}));
}

TEST_F(ReadEntry, TheEndAfterABackslashEndsTheEntry) {
  write("one\\");
  EXPECT_EQ(entries(), (std::vector<std::string>{"one\n"}));
}

TEST_F(ReadEntry, LongLinesComeWhole) {
  const std::string line(60000, 'x');  // a pipe holds 64 KiB
  write(line + "\n\nlast");
  EXPECT_EQ(entries(), (std::vector<std::string>{line, "", "last"}));
}

}  // namespace
}  // namespace kilin::cli

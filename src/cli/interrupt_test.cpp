#include "cli/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "cli/input.h"

namespace kilin::cli {
namespace {

TEST(InterruptGuard, CountsInterruptsUntilTheyAreForgotten) {
  InterruptGuard guard;
  EXPECT_FALSE(guard.pending());
  std::raise(SIGINT);
  EXPECT_TRUE(guard.pending());
  std::raise(SIGINT);
  guard.forget();
  EXPECT_FALSE(guard.pending());
  std::raise(SIGINT);
  EXPECT_TRUE(guard.pending());
}

TEST(InterruptGuard, EndsAWaitForALineEvenIfItCameBefore) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  InterruptGuard guard;
  LineReader lines(ends[0], guard.descriptor());
  std::string line;
  ASSERT_EQ(write(ends[1], "one\nhalf", 8), 8);
  EXPECT_EQ(lines.next(line), LineReader::Result::Line);
  std::raise(SIGINT);
  EXPECT_EQ(lines.next(line), LineReader::Result::Interrupted);
  guard.forget();
  ASSERT_EQ(write(ends[1], "two\n", 4), 4);
  EXPECT_EQ(lines.next(line), LineReader::Result::Line);
  EXPECT_EQ(line, "two");  // what came before the interrupt is gone
  close(ends[1]);
  EXPECT_EQ(lines.next(line), LineReader::Result::End);
  close(ends[0]);
}

TEST(InterruptGuardDeathTest, TheThirdOneEndsTheProgram) {
  EXPECT_EXIT(
      {
        InterruptGuard guard;
        for (int i = 0; i < 3; ++i) std::raise(SIGINT);
        _exit(0);
      },
      ::testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace kilin::cli

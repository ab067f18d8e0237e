#include "cli/terminal/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "cli/terminal/input.h"

namespace kilin::cli {
namespace {

TEST(InterruptGuard, CountsInterruptsUntilTheyAreForgotten) {
  InterruptGuard guard(InterruptGuard::CtrlC::Asks);
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
  InterruptGuard guard(InterruptGuard::CtrlC::Asks);
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

TEST(InterruptGuard, SaysWhichSignalAskedForTheEnd) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const InterruptGuard guard;
    EXPECT_NO_THROW(guard.check());
    std::raise(signal);
    try {
      guard.check();
      ADD_FAILURE() << "nothing was thrown after signal " << signal;
    } catch (const Interrupted& interrupted) {
      EXPECT_EQ(interrupted.signal, signal);
      EXPECT_EQ(interrupted.exit_code(), 128 + signal);
    }
  }
}

TEST(InterruptGuard, ACountedCtrlCIsNoEndAndTheOtherSignalsAre) {
  InterruptGuard guard(InterruptGuard::CtrlC::Asks);
  std::raise(SIGINT);
  EXPECT_NO_THROW(guard.check());
  std::raise(SIGTERM);
  guard.forget();
  EXPECT_THROW(guard.check(), Interrupted);
}

TEST(InterruptGuard, LeavesAnIgnoredSignalIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const InterruptGuard guard;
    std::raise(SIGHUP);
    EXPECT_NO_THROW(guard.check());
  }
  std::signal(SIGHUP, SIG_DFL);
}

TEST(InterruptGuardDeathTest, ASecondRequestEndsTheProgram) {
  EXPECT_EXIT(
      {
        const InterruptGuard guard;
        std::raise(SIGINT);
        std::raise(SIGTERM);
        _exit(0);
      },
      ::testing::ExitedWithCode(143), "");
}

TEST(InterruptGuardDeathTest, TheThirdOneEndsTheProgram) {
  EXPECT_EXIT(
      {
        InterruptGuard guard(InterruptGuard::CtrlC::Asks);
        for (int i = 0; i < 3; ++i) std::raise(SIGINT);
        _exit(0);
      },
      ::testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace kilin::cli

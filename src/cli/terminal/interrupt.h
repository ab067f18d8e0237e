// Ctrl-C and the other signals that ask a program to end: as a question to a chat, as an orderly end to everything else.
#pragma once

#include <array>

namespace kilin::cli {

/// Thrown where the program was asked to end, so that it unwinds: half-written files go, and the terminal is left tidy.
struct Interrupted {
  int signal;
  int exit_code() const { return 128 + signal; }  ///< as shells say it
};

/// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the program; whoever works for long asks for them
/// between two pieces of work. One that was ignored already (nohup) stays so. One guard at a time.
class InterruptGuard {
 public:
  enum class CtrlC {
    Ends,  ///< SIGINT asks the program to end, as the others do
    Asks,  ///< SIGINT is counted; what it means is the owner's business
  };

  /// A second request to end, or a third Ctrl-C that nobody has forgotten, ends the program at once: something hangs then.
  /// @throws Error(Io)
  explicit InterruptGuard(CtrlC ctrl_c = CtrlC::Ends);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// @throws Interrupted if the program was asked to end
  void check() const;

  /// A counted Ctrl-C came since the last forget().
  bool pending() const;
  void forget();

  /// Can be read (by poll) after any of the signals, until forget(), so that none is missed between a look and a wait.
  int descriptor() const { return ends_[0]; }

 private:
  std::array<int, 2> ends_{};  // of a pipe that the handlers write to
};

}  // namespace kilin::cli

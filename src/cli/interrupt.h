// Ctrl-C as a question instead of an end.
#pragma once

#include <array>

namespace kilin::cli {

/// While it lives, SIGINT is counted. One at a time. A third one that nobody has forgotten ends the program: something hangs
/// then.
class InterruptGuard {
 public:
  /// @throws Error(Io)
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// One came since the last forget().
  bool pending() const;
  void forget();

  /// Can be read (by poll) while one is pending, so that none is missed between a look at pending() and a wait.
  int descriptor() const { return ends_[0]; }

 private:
  std::array<int, 2> ends_{};  // of a pipe that the handler writes to
};

}  // namespace kilin::cli

#include "cli/terminal/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "core/error.h"

namespace kilin::cli {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// Lock-free, so that the handlers may use them, on whatever thread they run.
std::atomic<int> interrupts{0};
std::atomic<int> ending{0};  // the signal that asked for it
std::atomic<int> wake_descriptor{-1};
std::array<struct sigaction, kSignals.size()> before;

void wake() {
  const int saved = errno;
  [[maybe_unused]] const ssize_t written = write(wake_descriptor, "", 1);
  errno = saved;
}

void count(int signal) {
  if (++interrupts >= 3) _exit(Interrupted{signal}.exit_code());
  wake();
}

void end(int signal) {
  if (ending.exchange(signal) != 0) _exit(Interrupted{signal}.exit_code());
  wake();
}

}  // namespace

InterruptGuard::InterruptGuard(CtrlC ctrl_c) {
  if (pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC) != 0) raise_errno("pipe");
  interrupts = 0;
  ending = 0;
  wake_descriptor = ends_[1];
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = kSignals[i] == SIGINT && ctrl_c == CtrlC::Asks ? count : end;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  for (int end : ends_) close(end);
}

void InterruptGuard::check() const {
  if (const int signal = ending; signal != 0) throw Interrupted{signal};
}

bool InterruptGuard::pending() const { return interrupts != 0; }

void InterruptGuard::forget() {
  std::array<char, 16> bytes;
  while (read(ends_[0], bytes.data(), bytes.size()) > 0) {
  }
  interrupts = 0;
}

}  // namespace kilin::cli

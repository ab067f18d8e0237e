#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "core/error.h"

namespace kilin::cli {

namespace {

constexpr int kInterruptedExit = 130;  // as shells say it of SIGINT

// Lock-free, so that the handler may use them, on whatever thread it runs.
std::atomic<int> interrupts{0};
std::atomic<int> wake_descriptor{-1};
struct sigaction before;

void count(int) {
  const int saved = errno;
  if (++interrupts >= 3) _exit(kInterruptedExit);
  [[maybe_unused]] const ssize_t written = write(wake_descriptor, "", 1);
  errno = saved;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  if (pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC) != 0) raise_errno("pipe");
  interrupts = 0;
  wake_descriptor = ends_[1];
  struct sigaction action = {};
  action.sa_handler = count;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before, nullptr);
  for (int end : ends_) close(end);
}

bool InterruptGuard::pending() const { return interrupts != 0; }

void InterruptGuard::forget() {
  interrupts = 0;
  std::array<char, 16> bytes;
  while (read(ends_[0], bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace kilin::cli

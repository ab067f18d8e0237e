#include "cli/terminal/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace kilin::cli {

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

Output::Output(int descriptor, OnFailure on_failure)
    : descriptor_(descriptor),
      on_failure_(on_failure),
      is_terminal_(isatty(descriptor) == 1),
      can_erase_(is_terminal_ && !environment("TERM").empty() && environment("TERM") != "dumb"),
      has_styles_(can_erase_ && environment("NO_COLOR").empty()) {}

Output Output::standard_output() { return {STDOUT_FILENO, OnFailure::Throw}; }
Output Output::standard_error() { return {STDERR_FILENO, OnFailure::Ignore}; }

void Output::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      if (on_failure_ == OnFailure::Ignore) return;
      if (errno == EPIPE) throw ReaderGone();
      throw OutputError(ErrorCode::Io, fmt::format("standard output: {}", std::strerror(errno)));
    }
  }
}

size_t Output::columns() const {
  constexpr size_t kUsual = 80;
  winsize size{};
  return ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

std::string styled(const Output& to, Style style, std::string_view text) {
  if (!to.has_styles()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", style == Style::Bold ? 1 : 2, text);
}

void prepare_standard_streams() {
  // A closed stream is opened the wrong way round, so that using it fails as it would have.
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace kilin::cli

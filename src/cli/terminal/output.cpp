#include "cli/terminal/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace kilin::cli {

Output::Output(int descriptor, OnFailure on_failure)
    : descriptor_(descriptor), on_failure_(on_failure), is_terminal_(isatty(descriptor) == 1) {}

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

void prepare_standard_streams() {
  // A closed stream is opened the wrong way round, so that using it fails as it would have.
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace kilin::cli

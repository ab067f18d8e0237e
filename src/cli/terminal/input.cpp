#include "cli/terminal/input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/error.h"

namespace kilin::cli {

namespace {

// Appends what can be read now. @param name of what is read. @returns false at the end
bool read_some(int descriptor, std::string& into, const std::string& name = "standard input") {
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got = read(descriptor, bytes.data(), bytes.size());
    if (got >= 0) {
      into.append(bytes.data(), static_cast<size_t>(got));
      return got > 0;
    }
    if (errno != EINTR) raise_errno(name);
  }
}

}  // namespace

std::string read_all(int descriptor) {
  std::string text;
  while (read_some(descriptor, text)) {
  }
  return text;
}

std::string read_whole(const std::filesystem::path& file) {
  struct Descriptor {
    int fd;
    ~Descriptor() { close(fd); }
  };
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) raise_errno(file.string());
  const Descriptor descriptor{fd};
  std::string text;
  while (read_some(fd, text, file.string())) {
  }
  return text;
}

LineReader::LineReader(int descriptor, int interrupts)
    : descriptor_(descriptor), interrupts_(interrupts), is_terminal_(isatty(descriptor) == 1) {}

// @returns false if it was interrupted
bool LineReader::wait() {
  if (interrupts_ == kNoInterrupts) return true;
  std::array<pollfd, 2> waiting = {pollfd{descriptor_, POLLIN, 0}, pollfd{interrupts_, POLLIN, 0}};
  while (poll(waiting.data(), waiting.size(), -1) < 0)
    if (errno != EINTR) raise_errno("standard input");
  return waiting[1].revents == 0;
}

LineReader::Result LineReader::next(std::string& line) {
  for (size_t searched = begin_;;) {
    const size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      line.assign(buffer_, begin_, newline == std::string::npos ? newline : newline - begin_);
      begin_ = newline == std::string::npos ? buffer_.size() : newline + 1;
      if (newline != std::string::npos && line.ends_with('\r')) line.pop_back();
      return is_terminal_ && line.size() >= kMostTyped ? Result::Cut : Result::Line;
    }
    if (ended_) return Result::End;
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched = buffer_.size();
    if (!wait()) {
      buffer_.clear();
      return Result::Interrupted;
    }
    ended_ = !read_some(descriptor_, buffer_);
  }
}

}  // namespace kilin::cli

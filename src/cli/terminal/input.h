// Standard input: whole, or line by line in a way that Ctrl-C can interrupt.
#pragma once

#include <filesystem>
#include <string>

namespace kilin::cli {

/// Everything that a descriptor gives. @throws Error(Io)
std::string read_all(int descriptor);

/// Everything that a file gives; it may be a pipe, for which this waits. @throws NotFound, Io
std::string read_whole(const std::filesystem::path& file);

/// Lines without their end, LF or CRLF; the last one may lack it.
class LineReader {
 public:
  enum class Result {
    Line,
    End,
    Interrupted,  // what was read of the line is forgotten
    Cut,          // the terminal cut it, and it is forgotten: what was beyond kMostTyped bytes is lost
  };

  static constexpr int kNoInterrupts = -1;
  static constexpr size_t kMostTyped = 4095;  ///< bytes that a terminal gives of a line, in Linux's canonical mode

  /// @param interrupts another descriptor: a wait for a line ends when that one can be read (InterruptGuard::descriptor)
  explicit LineReader(int descriptor, int interrupts = kNoInterrupts);

  /// @throws Error(Io)
  Result next(std::string& line);

 private:
  bool wait();

  int descriptor_;
  int interrupts_;
  bool is_terminal_;
  std::string buffer_;
  size_t begin_ = 0;  // of what was not given out
  bool ended_ = false;
};

}  // namespace kilin::cli

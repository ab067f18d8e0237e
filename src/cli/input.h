// Standard input: whole, or line by line in a way that Ctrl-C can interrupt.
#pragma once

#include <string>

namespace kilin::cli {

/// Everything that a descriptor gives. @throws Error(Io)
std::string read_all(int descriptor);

/// Lines without their newline; the last one may lack it.
class LineReader {
 public:
  enum class Result {
    Line,
    End,
    Interrupted,  // what was read of the line is forgotten
  };

  static constexpr int kNoInterrupts = -1;

  /// @param interrupts another descriptor: a wait for a line ends when that one can be read (InterruptGuard::descriptor)
  explicit LineReader(int descriptor, int interrupts = kNoInterrupts) : descriptor_(descriptor), interrupts_(interrupts) {}

  /// @throws Error(Io)
  Result next(std::string& line);

 private:
  bool wait();

  int descriptor_;
  int interrupts_;
  std::string buffer_;
  size_t begin_ = 0;  // of what was not given out
  bool ended_ = false;
};

}  // namespace kilin::cli

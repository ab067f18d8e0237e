// A bar for what takes long, on a terminal that can take it back, and gone when it is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/terminal/output.h"

namespace kilin::cli {

/// Shows itself when its work takes longer than half a second. One at a time.
class Progress {
 public:
  /// @param what names the work: "loading"
  Progress(const Output& to, std::string what);
  ~Progress() { erase(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `total` is done. @pre done <= total
  void update(uint64_t done, uint64_t total);

  /// Takes the bar off the terminal, so that something else can be written there.
  void erase();

 private:
  Output to_;
  std::string what_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point next_;  // to draw
  bool drawn_ = false;
};

/// "loading [#####     ]  50%", and then "  2:05 left", where it can be told: from what was done so far, in so many seconds.
/// The bar gets shorter where there are few columns; then the time, and last the bar are left out.
std::string progress_line(const std::string& what, uint64_t done, uint64_t total, double seconds, size_t columns);

}  // namespace kilin::cli

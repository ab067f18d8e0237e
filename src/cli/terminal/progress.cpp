#include "cli/terminal/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kilin::cli {

namespace {

constexpr std::chrono::milliseconds kPatience{500}, kInterval{100};
constexpr size_t kWidest = 40, kNarrowest = 8;  // of the bar

// "  1:02:05 left"; nothing before a hundredth is done, nor for less than two seconds, when it would be a guess or of no use.
std::string time_left(double share, double seconds) {
  if (share < 0.01 || share >= 1) return "";
  const double left = seconds / share * (1 - share);
  if (left < 2) return "";
  const auto whole = std::lround(std::min(left, 1e6));
  if (whole >= 3600) return fmt::format("  {}:{:02}:{:02} left", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("  {}:{:02} left", whole / 60, whole % 60);
}

}  // namespace

std::string progress_line(const std::string& what, uint64_t done, uint64_t total, double seconds, size_t columns) {
  const double share = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const std::string percent = fmt::format(" {:3d}%", static_cast<int>(share * 100));
  constexpr size_t kBrackets = 3;  // with the space before them
  const auto room = [&](const std::string& left) {
    const size_t words = what.size() + kBrackets + percent.size() + left.size();
    return columns > words ? columns - words : 0;
  };
  std::string left = time_left(share, seconds);
  if (room(left) < kNarrowest) left.clear();
  if (room(left) < kNarrowest) return (what + percent).substr(0, columns);
  const size_t width = std::min(kWidest, room(left));
  const auto filled = static_cast<size_t>(share * static_cast<double>(width));
  return fmt::format("{} [{}{}]{}{}", what, std::string(filled, '#'), std::string(width - filled, ' '), percent, left);
}

Progress::Progress(const Output& to, std::string what)
    : to_(to), what_(std::move(what)), start_(std::chrono::steady_clock::now()), next_(start_ + kPatience) {}

void Progress::update(uint64_t done, uint64_t total) {
  if (!to_.can_erase()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const size_t columns = to_.columns() - 1;  // a line that fills the last one may be broken
  to_.print("\r{}\x1b[K",
            progress_line(what_, done, total, seconds, columns));  // a shorter line leaves nothing of a longer one
  drawn_ = true;
}

void Progress::erase() {
  if (drawn_) to_.write("\r\x1b[K");
  drawn_ = false;
}

}  // namespace kilin::cli

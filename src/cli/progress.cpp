#include "cli/progress.h"

#include <algorithm>
#include <utility>

namespace kilin::cli {

namespace {

constexpr std::chrono::milliseconds kPatience{500}, kInterval{100};
constexpr size_t kWidth = 40;

}  // namespace

std::string progress_line(const std::string& what, uint64_t done, uint64_t total) {
  const double share = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<size_t>(share * kWidth);
  return fmt::format("{} [{}{}] {:3d}%", what, std::string(filled, '#'), std::string(kWidth - filled, ' '),
                     static_cast<int>(share * 100));
}

Progress::Progress(const Output& to, std::string what)
    : to_(to), what_(std::move(what)), next_(std::chrono::steady_clock::now() + kPatience) {}

void Progress::update(uint64_t done, uint64_t total) {
  if (!to_.is_terminal()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  to_.print("\r{}", progress_line(what_, done, total));
  drawn_ = true;
}

void Progress::erase() {
  if (drawn_) to_.write("\r\x1b[K");
  drawn_ = false;
}

}  // namespace kilin::cli

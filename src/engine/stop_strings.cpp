#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace kilin {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& s : strings_)
    if (s.empty()) raise(ErrorCode::InvalidArgument, "a stop string is empty; expected at least one character");
}

std::string StopStrings::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t stop = std::string::npos;
  for (const std::string& s : strings_) stop = std::min(stop, held_.find(s));
  if (stop != std::string::npos) {
    stopped_ = true;
    held_.resize(stop);
    return std::exchange(held_, {});
  }
  size_t hold = 0;  // the longest ending that begins a stop string
  for (const std::string& s : strings_)
    for (size_t n = std::min(s.size() - 1, held_.size()); n > hold; --n)
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(s).substr(0, n)) hold = n;
  std::string shown = held_.substr(0, held_.size() - hold);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::finish() { return stopped_ ? std::string() : std::exchange(held_, {}); }

}  // namespace kilin

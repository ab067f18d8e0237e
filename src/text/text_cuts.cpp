#include "text/text_cuts.h"

#include "text/unicode_classes.h"
#include "text/utf8.h"

namespace kilin {

std::optional<std::string_view> TextCuts::next() {
  if (at_ >= text_.size()) return std::nullopt;
  const size_t begin = at_;
  while (at_ < text_.size()) {
    if (characters_ == kMaxCharacters) {
      characters_ = run_ = 0;
      break;
    }
    const Utf8Unit unit = utf8_unit(text_, at_);
    const bool is_space = (classes_of(unit.code_point) & CharClass::kStrIsSpace) != 0;
    if (is_space != run_is_space_) run_ = 0;
    run_is_space_ = is_space;
    if (run_ == kMaxRun) {
      run_ = 0;
      break;
    }
    ++run_;
    ++characters_;
    at_ += unit.bytes;
  }
  return text_.substr(begin, at_ - begin);
}

}  // namespace kilin

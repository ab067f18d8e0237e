#include "text/detokenizer.h"

#include <utility>

#include "text/utf8.h"

namespace kilin {

std::string StreamingDetokenizer::push(int32_t id) {
  const std::string_view bytes = tokenizer_->token_bytes(id);
  if (specials_ == Specials::Skip && tokenizer_->is_special(id)) return {};
  pending_ += bytes;
  size_t certain = 0;
  while (certain < pending_.size()) {
    const Utf8Unit unit = utf8_unit(pending_, certain);
    if (unit.kind == Utf8Unit::Incomplete) break;
    certain += unit.bytes;
  }
  std::string text = replace_broken_utf8(std::string_view(pending_).substr(0, certain));
  pending_.erase(0, certain);
  return text;
}

std::string StreamingDetokenizer::finish() { return replace_broken_utf8(std::exchange(pending_, {})); }

}  // namespace kilin

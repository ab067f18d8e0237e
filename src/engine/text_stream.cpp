#include "engine/text_stream.h"

#include <utility>

namespace kilin {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings)
    : tokenizer_(&tokenizer), detokenizer_(tokenizer), stops_(std::move(stop_strings)) {}

std::string TextStream::push(int32_t id) {
  // An embedding may have more rows than the tokenizer has tokens; they have no text.
  if (static_cast<size_t>(id) >= tokenizer_->size()) return {};
  return stops_.push(detokenizer_.push(id));
}

std::string TextStream::finish() {
  std::string rest = stops_.push(detokenizer_.finish());
  return rest + stops_.finish();
}

}  // namespace kilin

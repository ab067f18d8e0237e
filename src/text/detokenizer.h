// Turns token ids into text one by one, as they come. A token's bytes may end inside a character; half a character is never
// returned.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace kilin {

/// What to write for special tokens.
enum class Specials {
  Skip,  // nothing
  Show,  // their names
};

/// The results of push() and finish() are UTF-8; put together they are what replace_broken_utf8 makes of the bytes of all shown
/// tokens.
class StreamingDetokenizer {
 public:
  /// `tokenizer` outlives this.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, Specials specials = Specials::Skip)
      : tokenizer_(&tokenizer), specials_(specials) {}

  /// Returns the text that is certain now; up to three bytes that may begin a character are kept for the next token.
  /// @throws InvalidArgument for an id that is no token
  std::string push(int32_t id);

  /// Returns the rest: U+FFFD if a character was begun. The object can then be used for another text.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  Specials specials_;
  std::string pending_;  // the beginning of a character
};

}  // namespace kilin

// Token ids to text as they come, one by one. A token's bytes may end inside a character; half a character is never given out.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace kilin {

/// What becomes of special tokens in text.
enum class Specials {
  Skip,  // they leave no trace
  Show,  // their names stand in the text
};

/// All that push() and finish() give is UTF-8; put together it is what replace_broken_utf8 makes of the bytes of all tokens
/// shown.
class StreamingDetokenizer {
 public:
  /// `tokenizer` outlives this.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, Specials specials = Specials::Skip)
      : tokenizer_(&tokenizer), specials_(specials) {}

  /// The text that is certain now; up to three bytes that may begin a character wait for the next token.
  /// @throws InvalidArgument for an id that is no token
  std::string push(int32_t id);

  /// The rest: U+FFFD if a character was begun. Ready for another text afterwards.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  Specials specials_;
  std::string pending_;  // the beginning of a character
};

}  // namespace kilin

// Any bytes, taken as text, as a tokeniser's files or as a model's output, give a kilin::Error or a result that is as
// documented.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "text/chat_format.h"
#include "text/detokenizer.h"
#include "text/tiktoken_file.h"
#include "text/tokenizer.h"
#include "text/tool_call_parser.h"
#include "text/utf8.h"

namespace kilin {
namespace {

// Crashes if the promise is broken, which libFuzzer reports.
void require(bool promise) {
  if (!promise) std::abort();
}

const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* token : {"  ", "aa", "aaaa", "th", "the", " the", "'s", "\n\n", "\xe4\xb8", "\xe4\xb8\xad", "||"})
      tokens.emplace_back(token);
    std::vector<SpecialToken> specials = published_special_tokens(tokens.size());
    return Tokenizer(tokens, std::move(specials), "small");
  }();
  return tokenizer;
}

void encode_and_decode(std::string_view text) {
  const Tokenizer& tokenizer = small_tokenizer();
  const bool is_text = !first_invalid_utf8(text);
  try {
    require(tokenizer.decode(tokenizer.encode(text)) == text);
    require(tokenizer.decode(tokenizer.encode_with_specials(text)) == text);
    const Message message{.role = Role::User, .content = std::string(text)};
    require(ChatFormat(tokenizer).encode({message}).size() >= 5);
    require(is_text);
  } catch (const Error&) {
    require(!is_text);
  }
}

void read_files(std::string_view bytes) {
  try {
    const BytePair ranks(parse_tiktoken(bytes, "tiktoken.model"), "tiktoken.model");
    for (size_t id = 0; id < ranks.size(); ++id)
      require(ranks.find(ranks.token(static_cast<int32_t>(id))) == static_cast<int32_t>(id));
  } catch (const Error&) {
  }
  try {
    const SpecialTokens specials(parse_special_tokens(bytes, "tokenizer_config.json", 1000), 1000, "tokenizer_config.json");
    require(specials.next_in(specials.name(1000), 0).has_value());
  } catch (const Error&) {
  }
}

// Every two bytes are an id, so that there are special tokens, and ids beyond the vocabulary, which end the output.
void read_output(std::string_view bytes) {
  const Tokenizer& tokenizer = small_tokenizer();
  StreamingDetokenizer detokenizer(tokenizer, Specials::Show);
  ToolCallParser parser(tokenizer);
  std::string raw, shown;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto high = static_cast<unsigned char>(bytes[i]), low = static_cast<unsigned char>(bytes[i + 1]);
    const int32_t id = high % 3 * 256 + low;
    try {
      shown += detokenizer.push(id);
      for (const OutputPart& part : parser.push(id))
        if (const auto* text = std::get_if<std::string>(&part)) require(!text->empty() && !first_invalid_utf8(*text));
      raw += tokenizer.token_bytes(id);
    } catch (const Error&) {
      require(static_cast<size_t>(id) >= tokenizer.size());
      break;
    }
  }
  shown += detokenizer.finish();
  require(shown == replace_broken_utf8(raw));
  parser.finish();
}

}  // namespace
}  // namespace kilin

// Every input is tried as all three, so that unchanged files and texts can serve as seeds.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  kilin::encode_and_decode(bytes);
  kilin::read_files(bytes);
  kilin::read_output(bytes);
  return 0;
}

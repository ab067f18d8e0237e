#include "text/tokenizer.h"

#include "core/error.h"
#include "core/file.h"
#include "text/pre_tokenizer.h"
#include "text/text_cuts.h"
#include "text/tiktoken_file.h"
#include "text/utf8.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

bool stands(const fs::path& file) {
  std::error_code ignored;  // a file that can't be examined counts as absent
  return fs::exists(file, ignored);
}

}  // namespace

bool Tokenizer::exists(const fs::path& folder) { return stands(folder / "tiktoken.model"); }

void Tokenizer::raise_missing(const fs::path& folder) {
  raise(ErrorCode::NotFound, "{}: holds no tiktoken.model, so text cannot be read or written; token ids can", folder.string());
}

Tokenizer Tokenizer::load(const fs::path& folder) {
  if (!exists(folder)) raise_missing(folder);
  const fs::path ranks = folder / "tiktoken.model", config = folder / "tokenizer_config.json";
  const std::vector<std::string> tokens = read_tiktoken(ranks);
  if (!stands(config)) return {tokens, published_special_tokens(tokens.size()), ranks.string()};
  return {tokens, parse_special_tokens(read_file(config), config.string(), tokens.size()), folder.string()};
}

Tokenizer::Tokenizer(const std::vector<std::string>& tokens, std::vector<SpecialToken> specials, std::string_view source)
    : source_(source), ranks_(tokens, source), specials_(std::move(specials), tokens.size(), source) {}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  require_utf8(text, "text");
  std::vector<int32_t> ids;
  BytePair::Scratch scratch;
  TextCuts cuts(text);
  while (const auto part = cuts.next()) encode_ordinary(*part, scratch, ids);
  return ids;
}

// As in Kimi's tokeniser, the text is cut first: a name that a cut divides stays text.
std::vector<int32_t> Tokenizer::encode_with_specials(std::string_view text) const {
  require_utf8(text, "text");
  std::vector<int32_t> ids;
  BytePair::Scratch scratch;
  TextCuts cuts(text);
  while (const auto part = cuts.next()) {
    size_t at = 0;
    while (const auto special = specials_.next_in(*part, at)) {
      encode_ordinary(part->substr(at, special->begin - at), scratch, ids);
      ids.push_back(special->id);
      at = special->end;
    }
    encode_ordinary(part->substr(at), scratch, ids);
  }
  return ids;
}

void Tokenizer::encode_ordinary(std::string_view text, BytePair::Scratch& scratch, std::vector<int32_t>& ids) const {
  PreTokenizer pieces(text);
  while (const auto piece = pieces.next()) ranks_.encode(*piece, scratch, ids);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (int32_t id : ids) bytes += token_bytes(id);
  return bytes;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  require_tokens({&id, 1});
  return is_special(id) ? std::string_view(specials_.name(id)) : ranks_.token(id);
}

std::optional<std::pair<std::string_view, std::string_view>> Tokenizer::parts_of(int32_t id) const {
  require_tokens({&id, 1});
  if (is_special(id)) return std::nullopt;
  return ranks_.parts_of(id);
}

bool Tokenizer::is_special(int32_t id) const { return id >= specials_.first_id() && static_cast<size_t>(id) < size(); }

int32_t Tokenizer::require_special(std::string_view name) const {
  if (const auto id = special(name)) return *id;
  raise(ErrorCode::Unsupported, "{}: the tokeniser has no token '{}', which Kimi's chat format needs", source_, name);
}

void Tokenizer::require_vocabulary(size_t vocab_size) const {
  if (size() <= vocab_size) return;
  const auto first = static_cast<int32_t>(vocab_size);
  raise(ErrorCode::Unsupported,
        "{}: {} '{}' has id {}, but vocab_size is {}; the embedding must have a row for each of the {} tokens", source_,
        is_special(first) ? "special token" : "token", replace_broken_utf8(token_bytes(first)), first, vocab_size, size());
}

void Tokenizer::require_tokens(std::span<const int32_t> ids) const {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= size())
      raise(ErrorCode::InvalidArgument, "token id {} at place {} is not in the vocabulary; ids are 0 to {}", ids[i], i,
            size() - 1);
}

}  // namespace kilin

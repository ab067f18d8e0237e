#include "gguf/tokenizer.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/config_bounds.h"
#include "core/error.h"
#include "gguf/byte_characters.h"
#include "text/utf8.h"

namespace kilin {

namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model", kPre = "tokenizer.ggml.pre", kTokens = "tokenizer.ggml.tokens",
                           kTypes = "tokenizer.ggml.token_type", kMerges = "tokenizer.ggml.merges";
constexpr int64_t kNormal = 1;

// What converters call the rules by which Kimi's tokeniser splits a text.
constexpr std::array<std::string_view, 2> kKimiRules = {"kimi-k2", "kimi-linear"};

class Reader {
 public:
  Reader(const GgufMetadata& metadata, const std::string& source) : metadata_(metadata), source_(source) {}

  std::optional<Tokenizer> read() const {
    const auto model = text(kModel);
    if (!model || *model == "none" || *model == "no_vocab") return std::nullopt;
    if (*model != "gpt2")
      raise(ErrorCode::Unsupported, "{}: key '{}' is '{}'; expected 'gpt2', byte-pair encoding", source_, kModel,
            printable(*model));
    const auto rules = text(kPre);
    if (!rules || std::ranges::find(kKimiRules, *rules) == kKimiRules.end())
      raise(ErrorCode::Unsupported, "{}: key '{}' is {}; expected '{}': Kilin splits texts as Kimi's tokeniser does", source_,
            kPre, rules ? fmt::format("'{}'", printable(*rules)) : "missing", kKimiRules[0]);

    const auto tokens = require_array(kTokens, GgufType::string).strings();
    if (tokens.size() > kMaxVocabulary)
      raise(ErrorCode::Corrupt, "{}: key '{}' holds {} tokens; expected at most {}", source_, kTokens, tokens.size(),
            kMaxVocabulary);
    const size_t ordinary = count_ordinary(tokens);
    std::vector<std::string> ranks;
    ranks.reserve(ordinary);
    for (size_t id = 0; id < ordinary; ++id) ranks.push_back(bytes_of(tokens[id], id));
    std::vector<SpecialToken> specials;
    for (size_t id = ordinary; id < tokens.size(); ++id)
      specials.push_back({static_cast<int32_t>(id), std::string(tokens[id])});
    check_merges(std::span(tokens).first(ordinary));
    return Tokenizer(ranks, std::move(specials), source_);
  }

 private:
  std::optional<std::string_view> text(std::string_view key) const {
    const GgufValue* value = metadata_.find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* found = value->as<std::string_view>()) return *found;
    raise(ErrorCode::Corrupt, "{}: key '{}' is of type {}; expected a string", source_, key, to_string(value->type));
  }

  const GgufArray* array(std::string_view key, GgufType element) const {
    const GgufValue* value = metadata_.find(key);
    if (value == nullptr) return nullptr;
    const auto* found = value->as<GgufArray>();
    if (found == nullptr || found->element() != element)
      raise(ErrorCode::Corrupt, "{}: key '{}' is of type {}; expected an array of type {}", source_, key,
            found == nullptr ? to_string(value->type) : to_string(found->element()), to_string(element));
    return found;
  }

  const GgufArray& require_array(std::string_view key, GgufType element) const {
    const GgufArray* found = array(key, element);
    if (found == nullptr)
      raise(ErrorCode::Corrupt, "{}: key '{}' is missing; expected an array of type {}", source_, key, to_string(element));
    return *found;
  }

  // Normal tokens come first, without a gap; their ids are their ranks.
  size_t count_ordinary(const std::vector<std::string_view>& tokens) const {
    const GgufArray& types = require_array(kTypes, GgufType::i32);
    if (types.size() != tokens.size())
      raise(ErrorCode::Corrupt, "{}: key '{}' holds {} values; expected {}, one for each of '{}'", source_, kTypes,
            types.size(), tokens.size(), kTokens);
    const auto is_normal = [&](size_t id) { return *types.at(id).as<int64_t>() == kNormal; };
    size_t ordinary = 0;
    while (ordinary < tokens.size() && is_normal(ordinary)) ++ordinary;
    for (size_t id = ordinary; id < tokens.size(); ++id)
      if (is_normal(id))
        raise(ErrorCode::Unsupported,
              "{}: token {} '{}' is a normal one, and token {} before it is not; expected all special tokens behind the others",
              source_, id, printable(tokens[id]), ordinary);
    return ordinary;
  }

  std::string bytes_of(std::string_view token, size_t id) const {
    std::string bytes;
    for (size_t at = 0; at < token.size();) {
      const Utf8Unit unit = utf8_unit(token, at);
      const auto byte = unit.kind == Utf8Unit::Character ? byte_of_character(unit.code_point) : std::nullopt;
      if (!byte)
        raise(ErrorCode::Corrupt, "{}: {}: token {} '{}' holds what stands for no byte at byte {}", source_, kTokens, id,
              printable(token), at);
      bytes += *byte;
      at += unit.bytes;
    }
    return bytes;
  }

  // Each merge makes a token of two, and they stand in the order of these tokens' ids: only then is the lowest rank the first
  // merge, as Kilin has it. Some converters name one way to make a token, others all of them.
  void check_merges(std::span<const std::string_view> tokens) const {
    const GgufArray* merges = array(kMerges, GgufType::string);
    if (merges == nullptr) return;
    std::unordered_map<std::string_view, size_t> ids;
    ids.reserve(tokens.size());
    for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], id);
    size_t last = 0;  // id that a merge made
    std::string whole;
    for (size_t i = 0; const std::string_view merge : merges->strings()) {
      const size_t space = merge.find(' ');
      whole.clear();
      if (space != std::string_view::npos) whole.append(merge.substr(0, space)).append(merge.substr(space + 1));
      const auto id = ids.find(whole);
      if (space == std::string_view::npos || id == ids.end() || !ids.contains(merge.substr(0, space)) ||
          !ids.contains(merge.substr(space + 1)))
        raise(ErrorCode::Corrupt, "{}: {}: number {}, '{}', does not make a token of two", source_, kMerges, i,
              printable(merge));
      if (id->second < last)
        raise(ErrorCode::Unsupported,
              "{}: {}: number {}, '{}', makes token {}, and one before it token {}; expected them in the order of ids, as in a "
              "vocabulary of tiktoken",
              source_, kMerges, i, printable(merge), id->second, last);
      last = id->second;
      ++i;
    }
  }

  const GgufMetadata& metadata_;
  const std::string& source_;
};

}  // namespace

std::optional<Tokenizer> read_gguf_tokenizer(const GgufMetadata& metadata, const std::string& source) {
  return Reader(metadata, source).read();
}

}  // namespace kilin

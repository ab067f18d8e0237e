#include "text/special_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "text/utf8.h"

namespace kilin {

namespace {

constexpr size_t kReserved = 256;       // ids that Kimi's tokeniser keeps for special tokens
constexpr size_t kMaxSpecials = 65536;  // far more than any tokeniser has: an id beyond is a mistake, not a token
constexpr size_t kMaxNameBytes = 256;

struct Published {
  size_t offset;
  std::string_view name;
};
constexpr std::array<Published, 15> kPublished = {{
    {0, "[BOS]"},
    {1, "[EOS]"},
    {2, "<|im_end|>"},
    {3, "<|im_user|>"},
    {4, "<|im_assistant|>"},
    {9, "[EOT]"},
    {10, "<|im_system|>"},
    {11, "<|tool_calls_section_begin|>"},
    {12, "<|tool_calls_section_end|>"},
    {13, "<|tool_call_begin|>"},
    {14, "<|tool_call_argument_begin|>"},
    {15, "<|tool_call_end|>"},
    {17, "<|im_middle|>"},
    {254, "[UNK]"},
    {255, "[PAD]"},
}};

// The `count` tokens from first_id on, with the names that are known.
std::vector<SpecialToken> fill(const std::map<size_t, std::string>& names, size_t first_id, size_t count) {
  std::vector<SpecialToken> tokens;
  for (size_t id = first_id; id < first_id + count; ++id) {
    const auto named = names.find(id);
    tokens.push_back(
        {static_cast<int32_t>(id), named != names.end() ? named->second : fmt::format("<|reserved_token_{}|>", id)});
  }
  return tokens;
}

size_t parse_id(const std::string& key, size_t first_id, std::string_view source) {
  size_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || (key.size() > 1 && key[0] == '0'))
    raise(ErrorCode::Corrupt, "{}: added_tokens_decoder: key '{}' is not a token id", source, key);
  if (id < first_id)
    raise(ErrorCode::Corrupt, "{}: added_tokens_decoder: id {} is a token of tiktoken.model; special tokens begin at {}",
          source, id, first_id);
  if (id - first_id >= kMaxSpecials)
    raise(ErrorCode::Corrupt,
          "{}: added_tokens_decoder: id {} is out of range; tiktoken.model has {} tokens, and at most {} follow", source, id,
          first_id, kMaxSpecials);
  return id;
}

// The published names have their places behind the others. One further back says that some of these are missing: a
// tiktoken.model cut at the end of a line looks whole.
void require_places(const std::map<size_t, std::string>& names, std::string_view source, size_t first_id) {
  for (const auto& [id, name] : names) {
    const auto published = std::ranges::find(kPublished, name, &Published::name);
    if (published != kPublished.end() && id > first_id + published->offset)
      raise(ErrorCode::Corrupt,
            "{}: added_tokens_decoder: '{}' has id {}, which follows on {} tokens of tiktoken.model; it has {} (is it cut "
            "short?)",
            source, name, id, id - published->offset, first_id);
  }
}

}  // namespace

std::vector<SpecialToken> published_special_tokens(size_t first_id) {
  std::map<size_t, std::string> names;
  for (const Published& token : kPublished) names[first_id + token.offset] = token.name;
  return fill(names, first_id, kReserved);
}

std::vector<SpecialToken> parse_special_tokens(std::string_view json, std::string_view source, size_t first_id) {
  const Json config = parse_json(json, source);
  if (!config.is_object()) raise(ErrorCode::Corrupt, "{}: is a JSON {}; expected an object", source, config.type_name());
  const auto decoder = config.find("added_tokens_decoder");
  if (decoder == config.end()) return published_special_tokens(first_id);
  if (!decoder->is_object())
    raise(ErrorCode::Corrupt, "{}: added_tokens_decoder is a JSON {}; expected an object", source, decoder->type_name());

  std::map<size_t, std::string> names;
  for (const auto& [key, entry] : decoder->items()) {
    const size_t id = parse_id(key, first_id, source);
    const auto content = entry.is_object() ? entry.find("content") : entry.end();
    if (!entry.is_object() || content == entry.end() || !content->is_string())
      raise(ErrorCode::Corrupt, "{}: added_tokens_decoder: {} has no string 'content'", source, id);
    names[id] = content->get<std::string>();
  }
  require_places(names, source, first_id);
  const size_t named = names.empty() ? 0 : names.rbegin()->first - first_id + 1;
  return fill(names, first_id, std::max(kReserved, named));
}

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens, size_t first_id, std::string_view source)
    : first_id_(static_cast<int32_t>(first_id)), trie_(1) {
  for (SpecialToken& token : tokens) {
    if (token.id != first_id_ + static_cast<int32_t>(names_.size()))
      raise(ErrorCode::Corrupt, "{}: special token '{}' has id {}; expected {}, the next one", source, token.name, token.id,
            first_id + names_.size());
    if (token.name.empty() || token.name.size() > kMaxNameBytes)
      raise(ErrorCode::Corrupt, "{}: the name of special token {} has {} bytes; expected 1 to {}", source, token.id,
            token.name.size(), kMaxNameBytes);
    if (first_invalid_utf8(token.name))
      raise(ErrorCode::Corrupt, "{}: the name of special token {} is not UTF-8", source, token.id);
    const auto [other, is_new] = ids_.emplace(token.name, token.id);
    if (!is_new)
      raise(ErrorCode::Corrupt, "{}: special tokens {} and {} are both named '{}'", source, other->second, token.id,
            token.name);
    add(token.name, token.id);
    names_.push_back(std::move(token.name));
  }
}

std::optional<int32_t> SpecialTokens::find(std::string_view name) const {
  const auto found = ids_.find(std::string(name));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const SpecialTokens::Node* SpecialTokens::child(const Node& node, char c) const {
  const auto found =
      std::find_if(node.children.begin(), node.children.end(), [c](const auto& entry) { return entry.first == c; });
  return found == node.children.end() ? nullptr : &trie_[found->second];
}

void SpecialTokens::add(std::string_view name, int32_t id) {
  size_t node = 0;
  for (char c : name) {
    if (const Node* next = child(trie_[node], c)) {
      node = static_cast<size_t>(next - trie_.data());
    } else {
      trie_[node].children.emplace_back(c, static_cast<uint32_t>(trie_.size()));
      node = trie_.size();
      trie_.emplace_back();
    }
  }
  trie_[node].id = id;
}

std::optional<SpecialTokens::Occurrence> SpecialTokens::next_in(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    std::optional<Occurrence> longest;
    const Node* node = &trie_[0];
    for (size_t at = begin; at < text.size() && (node = child(*node, text[at])) != nullptr; ++at)
      if (node->id >= 0) longest = {begin, at + 1, node->id};
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace kilin

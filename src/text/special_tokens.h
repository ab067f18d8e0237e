// Special tokens, which stand for no text of their own: their names, their ids, and where their names occur in a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kilin {

struct SpecialToken {
  int32_t id;
  std::string name;
};

/// The 256 special tokens from `first_id` on, as published with Kimi-Linear: [BOS], [EOS], <|im_end|>, ...; those without a
/// name are <|reserved_token_ID|>.
std::vector<SpecialToken> published_special_tokens(size_t first_id);

/// The special tokens that the text of a tokenizer_config.json names: those of `added_tokens_decoder`, and
/// <|reserved_token_ID|> for each other id from `first_id` up to the larger of the 256th and the last one named. Without that
/// key, the published ones. @param source names the file in errors. @throws Corrupt for text that is not such JSON, for an
/// invalid id or name, for an id below `first_id`, and for a published name further from it than published: tokens are missing
std::vector<SpecialToken> parse_special_tokens(std::string_view json, std::string_view source, size_t first_id);

/// Names and ids, one to one. Immutable, so const calls are thread-safe.
class SpecialTokens {
 public:
  /// @param tokens their ids are `first_id`, `first_id` + 1, ... in this order. @throws Corrupt if a name is empty, not UTF-8,
  /// longer than 256 bytes or given twice, or if the ids differ. @param source names the tokens in errors
  SpecialTokens(std::vector<SpecialToken> tokens, size_t first_id, std::string_view source);

  size_t size() const { return names_.size(); }
  int32_t first_id() const { return first_id_; }
  std::optional<int32_t> find(std::string_view name) const;

  /// @pre first_id() <= id < first_id() + size()
  const std::string& name(int32_t id) const { return names_[static_cast<size_t>(id - first_id_)]; }

  struct Occurrence {
    size_t begin, end;
    int32_t id;
  };
  /// The first name in `text` at or after `from`; of several that begin there, the longest. Takes time linear in the text up to
  /// there.
  std::optional<Occurrence> next_in(std::string_view text, size_t from) const;

 private:
  struct Node {  // of a trie over the names' bytes
    std::vector<std::pair<char, uint32_t>> children;
    int32_t id = -1;
  };
  const Node* child(const Node& node, char c) const;
  void add(std::string_view name, int32_t id);

  int32_t first_id_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Node> trie_;
};

}  // namespace kilin

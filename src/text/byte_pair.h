// Byte-pair encoding with tiktoken's ranks: a piece that is a token becomes that token. In any other piece, the two neighbours
// that together make the token of the lowest rank are merged (the leftmost pair among equals), until no two neighbours make a
// token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kilin {

/// Immutable, so const calls are thread-safe.
class BytePair {
 public:
  /// @param tokens the bytes of each token; the index is rank and id. Every single byte must be among them, so that any text
  /// can be encoded. @param source names them in errors. @throws Corrupt
  BytePair(const std::vector<std::string>& tokens, std::string_view source);

  size_t size() const { return begins_.size() - 1; }

  /// The bytes of a token. @pre 0 <= id < size()
  std::string_view token(int32_t id) const {
    const auto i = static_cast<size_t>(id);
    return std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }

  std::optional<int32_t> find(std::string_view token) const;

  /// The two tokens whose merge makes this one when its bytes are encoded by merges of lower ranks only; nothing for a single
  /// byte or a token that no merge makes. @pre 0 <= id < size()
  std::optional<std::pair<std::string_view, std::string_view>> parts_of(int32_t id) const;

  /// Memory for encode, which many pieces can share.
  struct Scratch {
    struct Part {
      uint32_t previous, next;  // first bytes of the neighbours
      int32_t id;
      int32_t merged;  // the token that this part makes with the next, or -1
    };
    std::vector<Part> parts;      // by the part's first byte
    std::vector<uint64_t> queue;  // heap of merges, least first: rank << 32 | first byte
  };

  /// Appends the ids of one piece, in O(n log n) for n bytes. @throws InvalidArgument from 4 GiB on
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  std::string bytes_;           // of all tokens, one after the other
  std::vector<size_t> begins_;  // and the end of the last
  std::vector<int32_t> slots_;  // hash table of ids with linear probing, -1 where empty; a power of two, at most half full
  size_t longest_ = 0;          // bytes of the longest token
};

}  // namespace kilin

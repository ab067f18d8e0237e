#include "text/byte_pair.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>

#include "core/error.h"
#include "core/random.h"

namespace kilin {

namespace {

uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = bytes.size();
  for (; bytes.size() > 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = scatter(hash ^ word);
  }
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return scatter(hash ^ word);
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes.substr(0, 16)) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return bytes.size() > 16 ? out + "..." : out;
}

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

}  // namespace

BytePair::BytePair(const std::vector<std::string>& tokens, std::string_view source) {
  if (tokens.size() > std::numeric_limits<int32_t>::max() / 4)
    raise(ErrorCode::Corrupt, "{}: {} tokens are too many", source, tokens.size());
  slots_.assign(std::bit_ceil(2 * tokens.size() + 2), -1);
  begins_.push_back(0);
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    const std::string& token = tokens[rank];
    if (token.empty()) raise(ErrorCode::Corrupt, "{}: the token of rank {} is empty", source, rank);
    if (const auto other = find(token))
      raise(ErrorCode::Corrupt, "{}: ranks {} and {} are the same token, bytes {}", source, *other, rank, hex(token));
    bytes_ += token;
    begins_.push_back(bytes_.size());
    longest_ = std::max(longest_, token.size());
    size_t slot = hash_of(token) & (slots_.size() - 1);
    while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<int32_t>(rank);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (!find({&c, 1}))
      raise(ErrorCode::Corrupt, "{}: no token for the single byte 0x{:02x}; all 256 are needed", source, byte);
  }
}

std::optional<int32_t> BytePair::find(std::string_view token_bytes) const {
  if (token_bytes.size() > longest_) return std::nullopt;
  size_t slot = hash_of(token_bytes) & (slots_.size() - 1);
  for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
    if (token(slots_[slot]) == token_bytes) return slots_[slot];
  return std::nullopt;
}

std::optional<std::pair<std::string_view, std::string_view>> BytePair::parts_of(int32_t id) const {
  const std::string_view whole = token(id);
  std::vector<size_t> cuts;  // where parts begin, and the end
  for (size_t i = 0; i <= whole.size(); ++i) cuts.push_back(i);
  while (cuts.size() > 3) {
    size_t at = 0;
    int32_t lowest = id;
    for (size_t i = 0; i + 2 < cuts.size(); ++i) {
      const auto merged = find(whole.substr(cuts[i], cuts[i + 2] - cuts[i]));
      if (!merged || *merged >= lowest) continue;
      lowest = *merged;
      at = i + 1;
    }
    if (lowest == id) return std::nullopt;
    cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(at));
  }
  if (cuts.size() < 3) return std::nullopt;
  return std::pair(whole.substr(0, cuts[1]), whole.substr(cuts[1]));
}

void BytePair::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (piece.empty()) return;
  if (const auto whole = find(piece)) {
    ids.push_back(*whole);
    return;
  }
  if (piece.size() >= kNone) raise(ErrorCode::InvalidArgument, "a piece of {} bytes is too long to encode", piece.size());

  // A part is identified by its first byte, which stays the same while the part merges with its right neighbours. A queue entry
  // is out of date once its part was merged into its left neighbour, or makes another token with its right one. Merges only
  // lengthen parts, so an outdated entry can't become valid again.
  const auto n = static_cast<uint32_t>(piece.size());
  auto& parts = scratch.parts;
  auto& queue = scratch.queue;
  const auto merged = [&](uint32_t part) {
    const uint32_t right = parts[part].next;
    return right == n ? -1 : find(piece.substr(part, parts[right].next - part)).value_or(-1);
  };
  const auto entry = [&](uint32_t part) { return uint64_t(parts[part].merged) << 32 | part; };

  parts.resize(n);
  queue.clear();
  for (uint32_t i = 0; i < n; ++i) parts[i] = {i == 0 ? kNone : i - 1, i + 1, *find(piece.substr(i, 1)), -1};
  for (uint32_t i = 0; i < n; ++i)
    if ((parts[i].merged = merged(i)) >= 0) queue.push_back(entry(i));
  std::make_heap(queue.begin(), queue.end(), std::greater<>());

  const auto look_again = [&](uint32_t part) {
    if ((parts[part].merged = merged(part)) < 0) return;
    queue.push_back(entry(part));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto part = static_cast<uint32_t>(queue.back());
    const auto id = static_cast<int32_t>(queue.back() >> 32);
    queue.pop_back();
    if (parts[part].merged != id) continue;
    const uint32_t swallowed = parts[part].next;
    parts[swallowed].merged = -1;
    parts[part].id = id;
    parts[part].next = parts[swallowed].next;
    if (parts[part].next != n) parts[parts[part].next].previous = part;
    look_again(part);
    if (parts[part].previous != kNone) look_again(parts[part].previous);
  }
  for (uint32_t part = 0; part != n; part = parts[part].next) ids.push_back(parts[part].id);
}

}  // namespace kilin

// Turns text into token ids and back: Kimi's tokeniser, which is tiktoken's byte-pair encoding with Kimi's split pattern.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_pair.h"
#include "text/special_tokens.h"

namespace kilin {

/// The byte-pair tokens have the ids from 0 on, the special tokens those that follow. Immutable, so const calls are
/// thread-safe.
class Tokenizer {
 public:
  /// Whether `folder` holds a tokeniser at all; a checkpoint without one can still be run on ids.
  static bool exists(const std::filesystem::path& folder);

  /// Reads tiktoken.model, and the special tokens from tokenizer_config.json beside it; without that file they are the
  /// published ones. @throws NotFound, Io, Corrupt, Unsupported
  static Tokenizer load(const std::filesystem::path& folder);
  /// @throws NotFound, saying that the folder holds no tokenizer, so that only token ids can be used
  [[noreturn]] static void raise_missing(const std::filesystem::path& folder);

  /// @param tokens the bytes of each byte-pair token by rank, which is its id. @param specials their ids follow on, without a
  /// gap. @param source names them in errors. @throws Corrupt
  Tokenizer(const std::vector<std::string>& tokens, std::vector<SpecialToken> specials, std::string_view source);

  /// The ids of a text in which names of special tokens are ordinary text; for text from users. Takes linear time.
  /// @throws InvalidArgument if it is not UTF-8, naming the byte's offset
  std::vector<int32_t> encode(std::string_view text) const;

  /// The same, but each name of a special token becomes that token (the leftmost name; of several that begin there, the
  /// longest). For text that a program has put together.
  std::vector<int32_t> encode_with_specials(std::string_view text) const;

  /// The bytes that the ids stand for; a special token gives its name. They are not UTF-8 if the ids cut a character; use
  /// StreamingDetokenizer to get text. @throws InvalidArgument for an id that is no token
  std::string decode(std::span<const int32_t> ids) const;
  std::string_view token_bytes(int32_t id) const;

  /// As BytePair::parts_of; nothing for a special token. @throws InvalidArgument for an id that is no token
  std::optional<std::pair<std::string_view, std::string_view>> parts_of(int32_t id) const;

  /// Also false for an id that is no token.
  bool is_special(int32_t id) const;

  /// The id of the special token of that name, if there is one.
  std::optional<int32_t> special(std::string_view name) const { return specials_.find(name); }

  /// The same. @throws Unsupported, naming the token, if there is none
  int32_t require_special(std::string_view name) const;

  /// Names it in messages: the file or the folder that it was read from.
  const std::string& source() const { return source_; }

  /// The number of ids; every id from 0 to size() - 1 is a token.
  size_t size() const { return ranks_.size() + specials_.size(); }

  /// Throws Unsupported, naming the first token without a row, if there are more tokens than `vocab_size`, the rows of the
  /// embedding.
  void require_vocabulary(size_t vocab_size) const;

  /// Throws InvalidArgument, naming the id and its place, if one of them is no token.
  void require_tokens(std::span<const int32_t> ids) const;

 private:
  void encode_ordinary(std::string_view text, BytePair::Scratch& scratch, std::vector<int32_t>& ids) const;

  std::string source_;
  BytePair ranks_;
  SpecialTokens specials_;
};

}  // namespace kilin

#include "gguf/tokenizer.h"

#include <gtest/gtest.h>

#include "checkpoint/gguf_file.h"
#include "core/error.h"
#include "gguf/byte_characters.h"
#include "support/golden.h"
#include "support/mini_gguf.h"

namespace kilin {
namespace {

using testing::GgufBuilder;
using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

GgufBuilder with_tokenizer() {
  GgufBuilder file;
  testing::add_tokenizer(file);
  return file;
}

std::optional<Tokenizer> read(const GgufBuilder& file) {
  const testing::TemporaryFolder folder;
  file.write(folder / "m.gguf");
  const auto gguf = GgufFile::open(folder / "m.gguf");
  return read_gguf_tokenizer(gguf->metadata(), "file");
}

void expect_refused(const GgufBuilder& file, ErrorCode code, const std::string& words) {
  try {
    read(file);
    ADD_FAILURE() << "not refused; expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what() << "\nexpected: " << words;
  }
}

TEST(GgufTokenizer, EveryByteHasItsStandIn) {
  const Tokenizer tokenizer = *read(with_tokenizer());
  ASSERT_EQ(tokenizer.size(), 260u);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(tokenizer.token_bytes(byte), std::string(1, static_cast<char>(byte)));
}

TEST(GgufTokenizer, MergesNormalTokensAndKeepsSpecialOnesApart) {
  const Tokenizer tokenizer = *read(with_tokenizer());
  EXPECT_EQ(tokenizer.encode("cab"), (Ids{'c', 256}));
  EXPECT_EQ(tokenizer.encode("[EOS]").size(), 5u);
  EXPECT_EQ(tokenizer.encode_with_specials("ab[EOS]<|im_end|>"), (Ids{256, 257, 258}));
  EXPECT_EQ(tokenizer.special("[EOT]"), 259);
  EXPECT_FALSE(tokenizer.is_special(256));
}

TEST(GgufTokenizer, AFileWithoutOneHasNone) {
  EXPECT_FALSE(read(GgufBuilder()));
  EXPECT_FALSE(read(GgufBuilder().key("tokenizer.ggml.model", "none")));
}

TEST(GgufTokenizer, OtherKindsAreRefusedByName) {
  expect_refused(with_tokenizer().key("tokenizer.ggml.model", "llama"), ErrorCode::Unsupported, "'llama'; expected 'gpt2'");
  expect_refused(with_tokenizer().key("tokenizer.ggml.pre", "qwen2"), ErrorCode::Unsupported, "'qwen2'; expected 'kimi-k2'");
  expect_refused(with_tokenizer().without_key("tokenizer.ggml.pre"), ErrorCode::Unsupported, "is missing");
  expect_refused(with_tokenizer().key("tokenizer.ggml.model", 1u), ErrorCode::Corrupt, "of type u32; expected a string");
}

TEST(GgufTokenizer, VocabulariesThatContradictThemselvesAreRefused) {
  const std::string tokens = "tokenizer.ggml.tokens", types = "tokenizer.ggml.token_type", merges = "tokenizer.ggml.merges";
  expect_refused(with_tokenizer().without_key(tokens), ErrorCode::Corrupt, "'tokenizer.ggml.tokens' is missing");
  expect_refused(with_tokenizer().without_key(types), ErrorCode::Corrupt, "'tokenizer.ggml.token_type' is missing");
  expect_refused(with_tokenizer().key(types, std::vector<int32_t>{1}), ErrorCode::Corrupt, "holds 1 values; expected 260");
  expect_refused(with_tokenizer().key(tokens, std::vector<int32_t>{1}), ErrorCode::Corrupt, "expected an array of type string");
  std::vector<int32_t> mixed(260, 1);
  mixed[3] = 3;
  expect_refused(with_tokenizer().key(types, mixed), ErrorCode::Unsupported, "behind the others");
  expect_refused(with_tokenizer().key(merges, Strings{"b a"}), ErrorCode::Corrupt, "'b a', does not make a token of two");
  expect_refused(with_tokenizer().key(merges, Strings{"ab"}), ErrorCode::Corrupt, "'ab', does not make a token of two");
  EXPECT_TRUE(read(with_tokenizer().without_key(merges)));
}

// Bytes, then ab 256, bc 257, abc 258, which can be put together in two ways.
GgufBuilder with_merges(const Strings& merges) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(as_characters(std::string(1, static_cast<char>(byte))));
  for (const char* more : {"ab", "bc", "abc"}) tokens.emplace_back(more);
  GgufBuilder file;
  file.key("tokenizer.ggml.model", "gpt2").key("tokenizer.ggml.pre", "kimi-k2").key("tokenizer.ggml.tokens", tokens);
  return file.key("tokenizer.ggml.token_type", std::vector<int32_t>(tokens.size(), 1)).key("tokenizer.ggml.merges", merges);
}

TEST(GgufTokenizer, ATokenMayHaveSeveralMerges) {
  const Strings one = {"a b", "b c", "ab c"};
  for (const Strings& merges : {one, Strings{"a b", "b c", "a bc", "ab c"}, Strings{"a b", "b c", "ab c", "a bc", "ab c"}})
    for (const char* text : {"abc", "aabcbc", "xbcab"})
      EXPECT_EQ(read(with_merges(merges))->encode(text), read(with_merges(one))->encode(text)) << text;
  expect_refused(with_merges({"b c", "a b", "ab c"}), ErrorCode::Unsupported, "'a b', makes token 256, and one before it");
  expect_refused(with_merges({"a b", "ab c", "b c", "a bc"}), ErrorCode::Unsupported, "in the order of ids");
}

TEST(GgufTokenizer, WhatStandsForNoByteIsRefused) {
  for (const char* wrong : {"\xc5\x84", "\xe4\xbd\xa0", "\xff", " "}) {
    GgufBuilder file;
    file.key("tokenizer.ggml.model", "gpt2").key("tokenizer.ggml.pre", "kimi-k2");
    file.key("tokenizer.ggml.tokens", Strings{wrong}).key("tokenizer.ggml.token_type", std::vector<int32_t>{1});
    expect_refused(file, ErrorCode::Corrupt, "stands for no byte");
  }
}

TEST(GgufTokenizer, OfAGoldenFileGivesTextBack) {
  GOLDEN_OR_SKIP(file, "gguf/mini-q2_k.gguf");
  const auto gguf = GgufFile::open(file);
  const auto tokenizer = read_gguf_tokenizer(gguf->metadata(), gguf->source());
  ASSERT_TRUE(tokenizer);
  const std::string text = "The whale, \xe4\xbd\xa0\xe5\xa5\xbd\n\t!";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(tokenizer->special("<|im_end|>"), 770);
  EXPECT_EQ(tokenizer->size(), 1024u);
}

}  // namespace
}  // namespace kilin

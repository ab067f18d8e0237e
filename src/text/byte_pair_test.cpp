#include "text/byte_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "support/golden.h"
#include "support/tokens.h"
#include "text/tiktoken_file.h"

namespace kilin {
namespace {

using testing::single_bytes_and;

std::vector<int32_t> encode(const BytePair& ranks, std::string_view piece) {
  BytePair::Scratch scratch;
  std::vector<int32_t> ids;
  ranks.encode(piece, scratch, ids);
  return ids;
}

// The definition, step by step: quadratic, but too simple to get wrong.
std::vector<int32_t> encode_naively(const BytePair& ranks, std::string_view piece) {
  if (const auto whole = ranks.find(piece)) return {*whole};
  std::vector<std::string> parts;
  parts.reserve(piece.size());
  for (char c : piece) parts.emplace_back(1, c);
  for (;;) {
    int32_t best = -1;
    size_t place = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto id = ranks.find(parts[i] + parts[i + 1]);
      if (id && (best < 0 || *id < best)) best = *id, place = i;
    }
    if (best < 0) break;
    parts[place] += parts[place + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  std::vector<int32_t> ids;
  ids.reserve(parts.size());
  for (const std::string& part : parts) ids.push_back(*ranks.find(part));
  return ids;
}

TEST(BytePair, MergesTheLowestRankFirstAndTheLeftmostOfEquals) {
  const BytePair ranks(single_bytes_and({"bc", "ab", "aa"}), "x");
  EXPECT_EQ(encode(ranks, "abc"), (std::vector<int32_t>{'a', 256}));
  EXPECT_EQ(encode(ranks, "aaa"), (std::vector<int32_t>{258, 'a'}));
  EXPECT_EQ(encode(ranks, "ab"), (std::vector<int32_t>{257}));
  EXPECT_EQ(encode(ranks, ""), (std::vector<int32_t>{}));
}

TEST(BytePair, APieceThatIsATokenIsThatTokenEvenIfNoMergesLeadThere) {
  const BytePair ranks(single_bytes_and({"abcd"}), "x");
  EXPECT_EQ(encode(ranks, "abcd"), (std::vector<int32_t>{256}));
  EXPECT_EQ(encode(ranks, "abcde"), (std::vector<int32_t>{'a', 'b', 'c', 'd', 'e'}));
}

TEST(BytePair, AgreesWithTheDefinitionOnRandomRanksAndPieces) {
  uint64_t counter = 0;
  const auto below = [&](size_t n) { return static_cast<size_t>(random_bits(3, counter++) % n); };
  const auto random_text = [&](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + below(3));
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> distinct;
    while (distinct.size() < 40) distinct.insert(random_text(2 + below(5)));
    std::vector<std::string> more(distinct.begin(), distinct.end());
    for (size_t i = more.size(); i > 1; --i) std::swap(more[i - 1], more[below(i)]);
    const BytePair ranks(single_bytes_and(more), "x");
    for (int i = 0; i < 10; ++i) {
      const std::string piece = random_text(1 + below(60));
      ASSERT_EQ(encode(ranks, piece), encode_naively(ranks, piece)) << piece;
    }
  }
}

TEST(BytePair, AgreesWithTheDefinitionOnTheTokensOfTheTinyModel) {
  const BytePair ranks(read_tiktoken(testing::in_repository("models/tiny/tiktoken.model")), "x");
  for (const char* piece : {"the", "Lord", "strengthened", "notwithstanding", "thethethethe", "        ", "\xff\xfe", "中文"})
    EXPECT_EQ(encode(ranks, piece), encode_naively(ranks, piece)) << piece;
}

// Tokens of every power of two in length make the merges cascade through the whole piece.
TEST(BytePair, TakesAMegabyteOfOneLetterAsOnePiece) {
  std::vector<std::string> powers;
  for (size_t length = 2; length <= 4096; length *= 2) powers.emplace_back(length, 'a');
  const BytePair ranks(single_bytes_and(powers), "x");
  const auto ids = encode(ranks, std::string(size_t{1} << 20, 'a'));
  EXPECT_EQ(ids, std::vector<int32_t>(256, 256 + 11));
}

TEST(BytePair, FindsEveryTokenAndNoOther) {
  const BytePair ranks(single_bytes_and({"ab", "abcdefgh", "abcdefghi", std::string("\0\0", 2), std::string(100, 'x')}), "x");
  for (size_t id = 0; id < ranks.size(); ++id) {
    const auto i = static_cast<int32_t>(id);
    EXPECT_EQ(ranks.find(ranks.token(i)), i);
  }
  for (const std::string& other :
       {std::string(), std::string("abc"), std::string("\0\0\0", 3), std::string(99, 'x'), std::string(101, 'x')})
    EXPECT_FALSE(ranks.find(other));
}

TEST(BytePair, RefusesTokensThatContradictEachOtherOrLeaveAByteOut) {
  const auto message = [](const std::vector<std::string>& tokens) -> std::string {
    try {
      BytePair(tokens, "tiktoken.model");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(single_bytes_and({"ab", "ab"})), "tiktoken.model: ranks 256 and 257 are the same token, bytes 6162");
  EXPECT_EQ(message(single_bytes_and({""})), "tiktoken.model: the token of rank 256 is empty");
  auto tokens = single_bytes_and({});
  tokens.back() = "ab";
  EXPECT_EQ(message(tokens), "tiktoken.model: no token for the single byte 0xff; all 256 are needed");
  EXPECT_EQ(message({}), "tiktoken.model: no token for the single byte 0x00; all 256 are needed");
}

}  // namespace
}  // namespace kilin

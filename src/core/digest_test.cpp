#include "core/digest.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace kilin {
namespace {

uint64_t digest_of(std::string_view text) { return kilin::digest_of(std::as_bytes(std::span(text.data(), text.size()))); }

// From the algorithm's specification and its tool xxhsum -H3: files on disk hold these.
TEST(Digest, IsXxh3WhateverTheVersionOfTheLibrary) {
  EXPECT_EQ(digest_of(""), 0x2d06800538d394c2u);
  EXPECT_EQ(digest_of("a"), 0xe6c632b61e964e1fu);
  EXPECT_EQ(digest_of("abc"), 0x78af5f94892f3950u);
}

TEST(Digest, EveryBitCounts) {
  std::vector<std::byte> bytes(5000);
  const uint64_t before = kilin::digest_of(bytes);
  for (size_t i = 0; i < bytes.size(); i += 37) {
    bytes[i] ^= std::byte{4};
    EXPECT_NE(kilin::digest_of(bytes), before) << i;
    bytes[i] ^= std::byte{4};
  }
  EXPECT_EQ(kilin::digest_of(bytes), before);
}

}  // namespace
}  // namespace kilin

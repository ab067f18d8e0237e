#include "kernels/quant/blocks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/random.h"

namespace kilin {
namespace {

std::vector<std::byte> random_bytes(size_t count, uint64_t seed) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random_bits(seed, i));
  return bytes;
}

std::vector<float> dequantized(BlockFormat format, const std::vector<std::byte>& blocks) {
  std::vector<float> out(blocks.size() / block_size(format).bytes * block_size(format).elements);
  dequantize_row(format, blocks.data(), out.size(), out.data());
  return out;
}

void set_half(std::vector<std::byte>& block, size_t at, float value) {
  const uint16_t bits = to_f16(value).bits;
  std::memcpy(block.data() + at, &bits, 2);
}

std::vector<std::byte> zero_block(BlockFormat format) { return std::vector<std::byte>(block_size(format).bytes); }

TEST(Blocks, TraitsAgreeWithTheSizes) {
  for (BlockFormat format : kBlockFormats) {
    const BlockTraits& traits = block_traits(format);
    EXPECT_EQ(traits.elements, block_size(format).elements) << to_string(format);
    EXPECT_EQ(traits.elements % traits.group, 0u) << to_string(format);
    EXPECT_LE(traits.elements / traits.group, 16u) << to_string(format);
    EXPECT_LE(traits.elements * traits.bits / 8, block_size(format).bytes) << to_string(format);
  }
}

TEST(Blocks, AnyBytesComeBackWhenPutTogether) {
  for (BlockFormat format : kBlockFormats) {
    const size_t bytes = block_size(format).bytes;
    BlockParts parts;
    for (uint64_t seed = 0; seed < 500; ++seed) {
      const std::vector<std::byte> block = random_bytes(bytes, seed);
      std::vector<std::byte> again = random_bytes(bytes, seed + 1000);  // old content must not show through
      take_apart(format, block.data(), parts);
      if (std::isnan(parts.d) || std::isnan(parts.dmin)) continue;  // fp16 has many NaNs
      put_together(format, parts, again.data());
      ASSERT_EQ(block, again) << to_string(format) << ", seed " << seed;
    }
  }
}

TEST(Blocks, PartsStayWithinTheFormatsBits) {
  for (BlockFormat format : kBlockFormats) {
    const BlockTraits& traits = block_traits(format);
    const std::vector<std::byte> block = random_bytes(block_size(format).bytes, 7);
    BlockParts parts;
    take_apart(format, block.data(), parts);
    for (size_t i = 0; i < traits.elements; ++i) {
      ASSERT_LT(parts.codes[i], 1u << traits.bits) << to_string(format);
      ASSERT_GE(code_value(format, parts.codes[i]), -128);
      ASSERT_LE(code_value(format, parts.codes[i]), 127);
    }
    for (size_t i = traits.elements; i < kMostBlockElements; ++i) ASSERT_EQ(parts.codes[i], 0) << to_string(format);
    for (size_t g = 0; g < 16; ++g) {
      const bool used = g < traits.elements / traits.group;
      ASSERT_TRUE(used || parts.scales[g] == 0) << to_string(format);
      ASSERT_TRUE((used && traits.has_offsets) || parts.offsets[g] == 0) << to_string(format);
    }
  }
}

TEST(Blocks, RowsAreScaleTimesValuePlusOffsetBitForBit) {
  for (BlockFormat format : kBlockFormats) {
    const BlockTraits& traits = block_traits(format);
    const size_t bytes = block_size(format).bytes;
    const std::vector<std::byte> blocks = random_bytes(40 * bytes, 11);
    const std::vector<float> row = dequantized(format, blocks);
    BlockParts parts;
    for (size_t i = 0; i < row.size(); ++i) {
      take_apart(format, blocks.data() + i / traits.elements * bytes, parts);
      const size_t within = i % traits.elements;
      const size_t group = within / traits.group;
      const auto value = static_cast<float>(code_value(format, parts.codes[within]));
      const float expected = parts.scale(group) * value + parts.offset(group);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(row[i])) << to_string(format);
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(row[i]), std::bit_cast<uint32_t>(expected)) << to_string(format) << " " << i;
    }
  }
}

TEST(Blocks, ProductsAreExactInFp32) {
  for (BlockFormat format : kBlockFormats) {
    if (format == BlockFormat::mxfp4) continue;  // its scales are powers of two only
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const std::vector<std::byte> block = random_bytes(block_size(format).bytes, seed);
      BlockParts parts;
      take_apart(format, block.data(), parts);
      if (!std::isfinite(parts.d) || !std::isfinite(parts.dmin)) continue;
      for (size_t i = 0; i < block_traits(format).elements; ++i) {
        const size_t group = i / block_traits(format).group;
        const int value = code_value(format, parts.codes[i]);
        ASSERT_EQ(double{parts.scale(group) * static_cast<float>(value)}, double{parts.d} * parts.scales[group] * value);
        ASSERT_EQ(double{parts.offset(group)}, double{parts.dmin} * parts.offsets[group]);
      }
    }
  }
}

// Hand-computed blocks: each sets a few fields and says which elements they are.

TEST(Blocks, Q4_0KeepsElement16InTheHighHalfOfTheFirstByte) {
  auto block = zero_block(BlockFormat::q4_0);
  set_half(block, 0, 0.5f);
  block[2] = std::byte{0xf3};  // element 0: 3, element 16: 15
  const auto row = dequantized(BlockFormat::q4_0, block);
  EXPECT_EQ(row[0], 0.5f * (3 - 8));
  EXPECT_EQ(row[16], 0.5f * (15 - 8));
  EXPECT_EQ(row[1], 0.5f * -8);
}

TEST(Blocks, Q5_1KeepsFifthBitsInAWordOfTheirOwnAndAddsTheMinimum) {
  auto block = zero_block(BlockFormat::q5_1);
  set_half(block, 0, 2.0f);
  set_half(block, 2, -3.0f);
  block[4 + 2] = std::byte{0x02};  // bit 17
  block[8 + 1] = std::byte{0x50};  // element 17: low bits 5
  const auto row = dequantized(BlockFormat::q5_1, block);
  EXPECT_EQ(row[17], 2 * (16 + 5) - 3);
  EXPECT_EQ(row[1], -3);
}

TEST(Blocks, Q8_0IsTwosComplement) {
  auto block = zero_block(BlockFormat::q8_0);
  set_half(block, 0, 0.25f);
  block[2] = std::byte{0x80};
  block[33] = std::byte{0x7f};
  const auto row = dequantized(BlockFormat::q8_0, block);
  EXPECT_EQ(row[0], -32);
  EXPECT_EQ(row[31], 31.75f);
  EXPECT_EQ(row[5], 0);
}

TEST(Blocks, Q2_KHasItsScalesInFrontAndItsHalvesBehind) {
  auto block = zero_block(BlockFormat::q2_k);
  block[9] = std::byte{0x73};          // group 9, elements 144 to 159: scale 3, minimum 7
  block[16 + 32 + 20] = std::byte{8};  // elements 128 + 32 f + 20; field 1: 180, code 2
  block[16 + 32 + 18] = std::byte{1};  // field 0: element 146, code 1
  set_half(block, 80, 0.5f);
  set_half(block, 82, 0.25f);
  const auto row = dequantized(BlockFormat::q2_k, block);
  EXPECT_EQ(row[146], 0.5f * 3 * 1 - 0.25f * 7);
  EXPECT_EQ(row[147], -0.25f * 7);
  EXPECT_EQ(row[180], 0);  // its group's scale is 0
  EXPECT_EQ(row[0], 0);
}

TEST(Blocks, Q3_KSplitsScalesAndCodes) {
  auto block = zero_block(BlockFormat::q3_k);
  block[5] = std::byte{0x10};            // high bit of element 32 * 4 + 5 = 133, in group 8
  block[32 + 32 + 5] = std::byte{0x03};  // its low bits
  block[96] = std::byte{0x50};           // group 8: low bits 5
  block[104] = std::byte{0x30};          // and high bits 3
  set_half(block, 108, 2.0f);
  const auto row = dequantized(BlockFormat::q3_k, block);
  EXPECT_EQ(row[133], 2 * (53 - 32) * (7 - 4));
  EXPECT_EQ(row[134], 2 * (53 - 32) * -4);
  EXPECT_EQ(row[0], 2 * -32 * -4);
}

TEST(Blocks, Q4_KHasSixBitScalesAndMinima) {
  auto block = zero_block(BlockFormat::q4_k);
  set_half(block, 0, 1.0f);
  set_half(block, 2, 0.5f);
  block[4] = std::byte{0x80 | 63};       // group 0: scale 63; group 4: high bits of the scale 2
  block[8] = std::byte{0x40 | 9};        // group 0: minimum 9; group 4: high bits of the minimum 1
  block[12] = std::byte{0xa7};           // group 4: low bits 7 and 10
  block[16 + 64 + 3] = std::byte{0x0c};  // element 131, in group 4
  block[16 + 3] = std::byte{0x02};       // element 3
  const auto row = dequantized(BlockFormat::q4_k, block);
  EXPECT_EQ(row[3], 63 * 2 - 0.5f * 9);
  EXPECT_EQ(row[131], (32 + 7) * 12 - 0.5f * (16 + 10));
  EXPECT_EQ(row[163], 0);
}

TEST(Blocks, Q6_KHasSignedScales) {
  auto block = zero_block(BlockFormat::q6_k);
  block[64 + 40] = std::byte{0x90};       // element 128 + 64 + 40 = 232, low bits 9
  block[128 + 32 + 8] = std::byte{0xc0};  // field 3 of byte 8: element 128 + 96 + 8 = 232, high bits 3
  block[192 + 14] = std::byte{0xfd};      // its group's scale, -3
  set_half(block, 208, 0.5f);
  EXPECT_EQ(dequantized(BlockFormat::q6_k, block)[232], 0.5f * -3 * (57 - 32));
}

TEST(Blocks, Iq4_XsTakesCodesFromTheTable) {
  auto block = zero_block(BlockFormat::iq4_xs);
  set_half(block, 0, 1.0f);
  block[3] = std::byte{0x08};           // group 5: high bits 2
  block[4 + 2] = std::byte{0x60};       // and low bits 6: 38 - 32
  block[8 + 80 + 1] = std::byte{0xf0};  // element 160 + 17: code 15
  const auto row = dequantized(BlockFormat::iq4_xs, block);
  EXPECT_EQ(row[177], 6 * 113);
  EXPECT_EQ(row[160], 6 * -127);
  EXPECT_EQ(row[0], -32 * -127);
}

TEST(Blocks, Mxfp4HasAPowerOfTwoAndE2M1) {
  auto block = zero_block(BlockFormat::mxfp4);
  block[0] = std::byte{129};   // 2^2
  block[1] = std::byte{0xf1};  // element 0: 0.5, element 16: -6
  const auto row = dequantized(BlockFormat::mxfp4, block);
  EXPECT_EQ(row[0], 2);
  EXPECT_EQ(row[16], -24);
  for (int exponent = 0; exponent < 256; ++exponent) {
    block[0] = static_cast<std::byte>(exponent);
    BlockParts parts;
    take_apart(BlockFormat::mxfp4, block.data(), parts);
    ASSERT_EQ(double{parts.d}, std::ldexp(1.0, exponent - 128)) << exponent;
  }
}

}  // namespace
}  // namespace kilin

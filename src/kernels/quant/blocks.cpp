#include "kernels/quant/blocks.h"

#include <cassert>
#include <cstring>

#include "core/dtype.h"
#include "kernels/quant/block_layout.h"

namespace kilin {

namespace {

using Codebook = std::array<int8_t, 16>;

// Steps that widen away from zero, as in IQ4_NL and IQ4_XS.
constexpr Codebook kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// E2M1: a sign, two bits of exponent, one of mantissa; doubled.
constexpr Codebook kE2m1Values = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr const Codebook& codebook(BlockFormat format) { return format == BlockFormat::mxfp4 ? kE2m1Values : kIq4Values; }

const uint8_t* bytes_at(const std::byte* block, size_t at) { return reinterpret_cast<const uint8_t*>(block) + at; }
uint8_t* bytes_at(std::byte* block, size_t at) { return reinterpret_cast<uint8_t*>(block) + at; }

constexpr uint8_t low_bits(unsigned value, unsigned bits) { return static_cast<uint8_t>(value & ((1u << bits) - 1)); }

// Halves -----------------------------------------------------------------------------------------------------------------

float read_half(const std::byte* block, size_t at) {
  f16 half{};
  std::memcpy(&half.bits, block + at, sizeof half.bits);
  return to_float(half);
}

void write_half(float value, std::byte* block, size_t at) {
  const f16 half = to_f16(value);
  std::memcpy(block + at, &half.bits, sizeof half.bits);
}

// Codes ------------------------------------------------------------------------------------------------------------------

// Calls `visit(byte, shift, element)` for every field: the four nested loops of a plane in one place.
template <CodePlane kPlane, typename Visit>
void for_each_field(size_t elements, Visit&& visit) {
  constexpr size_t kFields = 8 / kPlane.bits;
  for (size_t begin = 0, byte = kPlane.at; begin < elements; begin += kFields * kPlane.run, byte += kPlane.run)
    for (size_t field = 0; field < kFields; ++field)
      for (size_t b = 0; b < kPlane.run; ++b)
        visit(byte + b, static_cast<unsigned>(field * kPlane.bits), begin + field * kPlane.run + b);
}

template <BlockFormat kFormat>
void read_codes(const std::byte* block, uint8_t* __restrict codes) {
  constexpr BlockLayout kLayout = block_layout(kFormat);
  const uint8_t* __restrict bytes = bytes_at(block, 0);
  for_each_field<kLayout.low>(kLayout.traits.elements, [&](size_t byte, unsigned shift, size_t element) {
    codes[element] =
        static_cast<uint8_t>(low_bits(static_cast<unsigned>(bytes[byte]) >> shift, kLayout.low.bits) ^ kLayout.flip);
  });
  if constexpr (kLayout.high.bits != 0)
    for_each_field<kLayout.high>(kLayout.traits.elements, [&](size_t byte, unsigned shift, size_t element) {
      const unsigned field = low_bits(static_cast<unsigned>(bytes[byte]) >> shift, kLayout.high.bits);
      codes[element] = static_cast<uint8_t>(codes[element] | field << kLayout.low.bits);
    });
}

// Into bytes that are zero.
template <BlockFormat kFormat>
void write_codes(const uint8_t* __restrict codes, std::byte* block) {
  constexpr BlockLayout kLayout = block_layout(kFormat);
  uint8_t* __restrict bytes = bytes_at(block, 0);
  for_each_field<kLayout.low>(kLayout.traits.elements, [&](size_t byte, unsigned shift, size_t element) {
    const unsigned field = low_bits(static_cast<unsigned>(codes[element] ^ kLayout.flip), kLayout.low.bits);
    bytes[byte] = static_cast<uint8_t>(bytes[byte] | field << shift);
  });
  if constexpr (kLayout.high.bits != 0)
    for_each_field<kLayout.high>(kLayout.traits.elements, [&](size_t byte, unsigned shift, size_t element) {
      const unsigned field = low_bits(static_cast<unsigned>(codes[element]) >> kLayout.low.bits, kLayout.high.bits);
      bytes[byte] = static_cast<uint8_t>(bytes[byte] | field << shift);
    });
}

// Scales of the groups ---------------------------------------------------------------------------------------------------

constexpr int8_t to_int8(int value) { return static_cast<int8_t>(value); }

// Groups 0 to 3 have the low six bits of bytes 0 to 3 (scales) and 4 to 7 (minima). Groups 4 to 7 have their four low bits in
// bytes 8 to 11, one nibble each, and their two high bits above those of group - 4.
void read_six_pairs(const uint8_t* at, BlockParts& parts) {
  for (size_t g = 0; g < 4; ++g) {
    parts.scales[g] = to_int8(at[g] & 63);
    parts.offsets[g] = to_int8(-(at[g + 4] & 63));
    parts.scales[g + 4] = to_int8((at[g + 8] & 15) | (at[g] >> 6) << 4);
    parts.offsets[g + 4] = to_int8(-((at[g + 8] >> 4) | (at[g + 4] >> 6) << 4));
  }
}

void write_six_pairs(const BlockParts& parts, uint8_t* at) {
  const auto scale = [&](size_t g) { return static_cast<uint8_t>(parts.scales[g]); };
  const auto minimum = [&](size_t g) { return static_cast<uint8_t>(-parts.offsets[g]); };
  for (size_t g = 0; g < 4; ++g) {
    at[g] = static_cast<uint8_t>((scale(g) & 63) | (scale(g + 4) >> 4 & 3) << 6);
    at[g + 4] = static_cast<uint8_t>((minimum(g) & 63) | (minimum(g + 4) >> 4 & 3) << 6);
    at[g + 8] = static_cast<uint8_t>((scale(g + 4) & 15) | (minimum(g + 4) & 15) << 4);
  }
}

void read_six(const uint8_t* at, BlockParts& parts) {
  for (size_t g = 0; g < 16; ++g) {
    const int low = at[g % 8] >> (g / 8 * 4) & 15;
    const int high = at[8 + g % 4] >> (g / 4 * 2) & 3;
    parts.scales[g] = to_int8((low | high << 4) - 32);
  }
}

void write_six(const BlockParts& parts, uint8_t* at) {
  for (size_t g = 0; g < 16; ++g) {
    const int scale = parts.scales[g] + 32;
    at[g % 8] = static_cast<uint8_t>(at[g % 8] | (scale & 15) << (g / 8 * 4));
    at[8 + g % 4] = static_cast<uint8_t>(at[8 + g % 4] | (scale >> 4 & 3) << (g / 4 * 2));
  }
}

void read_six_split(const uint8_t* at, BlockParts& parts) {
  for (size_t g = 0; g < 8; ++g) {
    const int low = at[2 + g / 2] >> (g % 2 * 4) & 15;
    const int high = at[g / 4] >> (g % 4 * 2) & 3;
    parts.scales[g] = to_int8((low | high << 4) - 32);
  }
}

void write_six_split(const BlockParts& parts, uint8_t* at) {
  for (size_t g = 0; g < 8; ++g) {
    const int scale = parts.scales[g] + 32;
    at[2 + g / 2] = static_cast<uint8_t>(at[2 + g / 2] | (scale & 15) << (g % 2 * 4));
    at[g / 4] = static_cast<uint8_t>(at[g / 4] | (scale >> 4 & 3) << (g % 4 * 2));
  }
}

template <BlockFormat kFormat>
void read_scales(const std::byte* block, BlockParts& parts) {
  constexpr BlockLayout kLayout = block_layout(kFormat);
  const uint8_t* at = bytes_at(block, kLayout.scales);
  if constexpr (kLayout.scale_bits == ScaleBits::One) {
    parts.scales[0] = 1;
    parts.offsets[0] = kLayout.traits.has_offsets ? 1 : 0;
  } else if constexpr (kLayout.scale_bits == ScaleBits::Nibbles) {
    for (size_t g = 0; g < 16; ++g) {
      parts.scales[g] = to_int8(at[g] & 15);
      parts.offsets[g] = to_int8(-(at[g] >> 4));
    }
  } else if constexpr (kLayout.scale_bits == ScaleBits::Six) {
    read_six(at, parts);
  } else if constexpr (kLayout.scale_bits == ScaleBits::SixPairs) {
    read_six_pairs(at, parts);
  } else if constexpr (kLayout.scale_bits == ScaleBits::Bytes) {
    std::memcpy(parts.scales.data(), at, 16);
  } else {
    static_assert(kLayout.scale_bits == ScaleBits::SixSplit);
    read_six_split(at, parts);
  }
}

// Into bytes that are zero.
template <BlockFormat kFormat>
void write_scales(const BlockParts& parts, std::byte* block) {
  constexpr BlockLayout kLayout = block_layout(kFormat);
  uint8_t* at = bytes_at(block, kLayout.scales);
  if constexpr (kLayout.scale_bits == ScaleBits::Nibbles) {
    for (size_t g = 0; g < 16; ++g) at[g] = static_cast<uint8_t>((parts.scales[g] & 15) | (-parts.offsets[g] & 15) << 4);
  } else if constexpr (kLayout.scale_bits == ScaleBits::Six) {
    write_six(parts, at);
  } else if constexpr (kLayout.scale_bits == ScaleBits::SixPairs) {
    write_six_pairs(parts, at);
  } else if constexpr (kLayout.scale_bits == ScaleBits::Bytes) {
    std::memcpy(at, parts.scales.data(), 16);
  } else if constexpr (kLayout.scale_bits == ScaleBits::SixSplit) {
    write_six_split(parts, at);
  }
}

// Whole blocks -----------------------------------------------------------------------------------------------------------

template <BlockFormat kFormat>
void take_apart_as(const std::byte* block, BlockParts& parts) {
  constexpr BlockLayout kLayout = block_layout(kFormat);
  parts.d = kFormat == BlockFormat::mxfp4 ? mxfp4_scale(*bytes_at(block, kLayout.d)) : read_half(block, kLayout.d);
  parts.dmin = kLayout.traits.has_offsets ? read_half(block, kLayout.dmin) : 0;
  parts.scales = {};
  parts.offsets = {};
  read_scales<kFormat>(block, parts);
  read_codes<kFormat>(block, parts.codes.data());
}

template <BlockFormat kFormat>
void put_together_as(const BlockParts& parts, std::byte* block) {
  constexpr BlockLayout kLayout = block_layout(kFormat);
  std::memset(block, 0, block_size(kFormat).bytes);
  if constexpr (kFormat == BlockFormat::mxfp4)
    *bytes_at(block, kLayout.d) = mxfp4_exponent(parts.d);
  else
    write_half(parts.d, block, kLayout.d);
  if constexpr (kLayout.traits.has_offsets) write_half(parts.dmin, block, kLayout.dmin);
  write_scales<kFormat>(parts, block);
  write_codes<kFormat>(parts.codes.data(), block);
}

template <BlockFormat kFormat>
void dequantize_row_as(const std::byte* blocks, size_t n, float* __restrict out) {
  constexpr BlockTraits kTraits = block_layout(kFormat).traits;
  const size_t bytes = block_size(kFormat).bytes;
  BlockParts parts;
  for (size_t begin = 0; begin < n; begin += kTraits.elements, blocks += bytes) {
    take_apart_as<kFormat>(blocks, parts);
    for (size_t first = 0; first < kTraits.elements; first += kTraits.group) {
      const float scale = parts.scale(first / kTraits.group);
      const float offset = parts.offset(first / kTraits.group);
      const uint8_t* __restrict codes = parts.codes.data() + first;
      float* __restrict to = out + begin + first;
      for (size_t i = 0; i < kTraits.group; ++i) {
        const int value = kTraits.codebook ? codebook(kFormat)[codes[i] & 15u] : codes[i] - kTraits.bias;
        to[i] = scale * static_cast<float>(value) + offset;
      }
    }
  }
}

}  // namespace

const BlockTraits& block_traits(BlockFormat format) { return block_layout(format).traits; }

int code_value(BlockFormat format, uint8_t code) {
  const BlockTraits& traits = block_traits(format);
  return traits.codebook ? codebook(format)[code & 15u] : code - traits.bias;
}

void take_apart(BlockFormat format, const std::byte* block, BlockParts& parts) {
  with_format(format, [&]<BlockFormat kFormat>() { take_apart_as<kFormat>(block, parts); });
}

void put_together(BlockFormat format, const BlockParts& parts, std::byte* block) {
  with_format(format, [&]<BlockFormat kFormat>() { put_together_as<kFormat>(parts, block); });
}

void dequantize_row(BlockFormat format, const std::byte* blocks, size_t n, float* out) {
  assert(n % block_traits(format).elements == 0);
  with_format(format, [&]<BlockFormat kFormat>() { dequantize_row_as<kFormat>(blocks, n, out); });
}

}  // namespace kilin

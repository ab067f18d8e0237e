// The layout of each block format, as data: the only place that knows where a byte or a bit is. blocks.cpp reads it at compile
// time. The layouts are those of GGUF files.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/quant/blocks.h"

namespace kilin {

/// Bits of all codes, packed from byte `at` on. Each run of `run` bytes holds 8 / bits fields: field f of its byte b belongs to
/// element f * run + b of the run's elements, which follow those of the run before.
struct CodePlane {
  size_t at;
  unsigned bits;  ///< 0: the format does not have this plane
  size_t run;
};

/// How the scales and offsets of the groups are stored.
enum class ScaleBits : uint8_t {
  One,       ///< not at all: one group per block, whose scale is d (and whose offset is dmin)
  Nibbles,   ///< q2_k: one byte per group, the scale in its low half, the minimum in its high one
  Six,       ///< q3_k: 16 of 6 bits, less 32: eight bytes of low nibbles, four of high pairs
  SixPairs,  ///< q4_k, q5_k: 8 scales and 8 minima of 6 bits in 12 bytes
  Bytes,     ///< q6_k: signed bytes
  SixSplit,  ///< iq4_xs: 8 of 6 bits, less 32: two bytes of high pairs, then four of low nibbles
};

/// The complete bit layout of a format.
struct BlockLayout {
  BlockTraits traits;
  size_t d;        ///< byte of the fp16 d, or of mxfp4's exponent
  size_t dmin;     ///< byte of the fp16 dmin; 0 (where d or codes are) if there is none
  CodePlane low;   ///< the codes' lower bits
  CodePlane high;  ///< and the rest
  ScaleBits scale_bits;
  size_t scales;  ///< byte where they begin
  uint8_t flip;   ///< exclusive-or of stored codes and codes: q8_0 stores two's complement
};

// clang-format off
inline constexpr std::array<BlockLayout, kBlockFormats.size()> kBlockLayouts = {{
    /* q4_0   */ {{.elements = 32, .group = 32, .bits = 4, .bias = 8, .codebook = false, .has_offsets = false},
                  0, 0, {2, 4, 16}, {}, ScaleBits::One, 0, 0},
    /* q4_1   */ {{.elements = 32, .group = 32, .bits = 4, .bias = 0, .codebook = false, .has_offsets = true},
                  0, 2, {4, 4, 16}, {}, ScaleBits::One, 0, 0},
    /* q5_0   */ {{.elements = 32, .group = 32, .bits = 5, .bias = 16, .codebook = false, .has_offsets = false},
                  0, 0, {6, 4, 16}, {2, 1, 1}, ScaleBits::One, 0, 0},
    /* q5_1   */ {{.elements = 32, .group = 32, .bits = 5, .bias = 0, .codebook = false, .has_offsets = true},
                  0, 2, {8, 4, 16}, {4, 1, 1}, ScaleBits::One, 0, 0},
    /* q8_0   */ {{.elements = 32, .group = 32, .bits = 8, .bias = 128, .codebook = false, .has_offsets = false},
                  0, 0, {2, 8, 32}, {}, ScaleBits::One, 0, 0x80},
    /* q2_k   */ {{.elements = 256, .group = 16, .bits = 2, .bias = 0, .codebook = false, .has_offsets = true},
                  80, 82, {16, 2, 32}, {}, ScaleBits::Nibbles, 0, 0},
    /* q3_k   */ {{.elements = 256, .group = 16, .bits = 3, .bias = 4, .codebook = false, .has_offsets = false},
                  108, 0, {32, 2, 32}, {0, 1, 32}, ScaleBits::Six, 96, 0},
    /* q4_k   */ {{.elements = 256, .group = 32, .bits = 4, .bias = 0, .codebook = false, .has_offsets = true},
                  0, 2, {16, 4, 32}, {}, ScaleBits::SixPairs, 4, 0},
    /* q5_k   */ {{.elements = 256, .group = 32, .bits = 5, .bias = 0, .codebook = false, .has_offsets = true},
                  0, 2, {48, 4, 32}, {16, 1, 32}, ScaleBits::SixPairs, 4, 0},
    /* q6_k   */ {{.elements = 256, .group = 16, .bits = 6, .bias = 32, .codebook = false, .has_offsets = false},
                  208, 0, {0, 4, 64}, {128, 2, 32}, ScaleBits::Bytes, 192, 0},
    /* iq4_nl */ {{.elements = 32, .group = 32, .bits = 4, .bias = 0, .codebook = true, .has_offsets = false},
                  0, 0, {2, 4, 16}, {}, ScaleBits::One, 0, 0},
    /* iq4_xs */ {{.elements = 256, .group = 32, .bits = 4, .bias = 0, .codebook = true, .has_offsets = false},
                  0, 0, {8, 4, 16}, {}, ScaleBits::SixSplit, 2, 0},
    /* mxfp4  */ {{.elements = 32, .group = 32, .bits = 4, .bias = 0, .codebook = true, .has_offsets = false},
                  0, 0, {1, 4, 16}, {}, ScaleBits::One, 0, 0},
}};
// clang-format on

constexpr const BlockLayout& block_layout(BlockFormat format) { return kBlockLayouts[static_cast<size_t>(format)]; }

/// 2^(exponent - 128): mxfp4's d, half of the file's, since the codes' values are doubled. Exact for every byte; the results of
/// 0 and 1 are subnormal.
constexpr float mxfp4_scale(uint8_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23);
}

/// The inverse. @pre a result of mxfp4_scale
constexpr uint8_t mxfp4_exponent(float scale) {
  const auto bits = std::bit_cast<uint32_t>(scale);
  return static_cast<uint8_t>(bits < 0x00800000u ? bits >> 22 : (bits >> 23) + 1);
}

template <typename Function, size_t... kIndices>
void with_format(BlockFormat format, const Function& function, std::index_sequence<kIndices...>) {
  const bool known = ((static_cast<size_t>(format) == kIndices &&
                       (function.template operator()<static_cast<BlockFormat>(kIndices)>(), true)) ||
                      ...);
  assert(known);
  static_cast<void>(known);
}

/// Calls `function` with the format as a template argument.
template <typename Function>
void with_format(BlockFormat format, const Function& function) {
  with_format(format, function, std::make_index_sequence<kBlockFormats.size()>());
}

}  // namespace kilin

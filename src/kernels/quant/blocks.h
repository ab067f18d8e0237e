// Takes blocks apart and puts them together. All code that reads or writes blocks goes through here; only block_layout.h knows
// their bits. All formats are GGUF's.
//
// Whatever the format, an element is   scale(s) * code_value(code) + offset(s),   s = i / group:
//   scale(s)  = d * scales[s]        offset(s) = dmin * offsets[s]
// in fp32. The products are exact, so that only the last addition rounds, and every reader gets the same bits. (The exception
// is an mxfp4 block with exponent 0 or 1: its scale is subnormal, so it is zero on threads that flush subnormals; see
// core/float_mode.h.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/storage_format.h"

namespace kilin {

inline constexpr size_t kMostBlockElements = 256;

/// The properties of a format.
struct BlockTraits {
  size_t elements;   ///< of a block: 32 or 256
  size_t group;      ///< elements that share a scale: 16 or 32
  unsigned bits;     ///< of a code: 2, 3, 4, 5, 6 or 8
  int bias;          ///< code_value(code) = code - bias, unless there is a codebook
  bool codebook;     ///< code_value is a table of 16 (IQ4_NL's or E2M1)
  bool has_offsets;  ///< otherwise all are 0
};
const BlockTraits& block_traits(BlockFormat format);

/// -128 .. 127. MXFP4's values are doubled, and its scales halved, so that the values are whole numbers.
int code_value(BlockFormat format, uint8_t code);

/// One block of one row.
struct BlockParts {
  float d = 0;                                      ///< fp16 in the file; mxfp4's power of two
  float dmin = 0;                                   ///< fp16 in the file; 0 without offsets
  std::array<int8_t, 16> scales{};                  ///< by group; 1 in the formats of 32
  std::array<int8_t, 16> offsets{};                 ///< by group: -min in the K formats, 1 in q4_1 and q5_1
  std::array<uint8_t, kMostBlockElements> codes{};  ///< in order of the elements

  float scale(size_t group) const { return d * static_cast<float>(scales[group]); }
  float offset(size_t group) const { return dmin * static_cast<float>(offsets[group]); }
};

/// Any bytes are a block; the fp16 numbers of a hostile one may be infinite or NaN. Sets d, dmin, scales and offsets (0 past
/// the last group) and the block's codes; codes past those stay as they were.
/// @param block block_size(format).bytes bytes, of any alignment and content
void take_apart(BlockFormat format, const std::byte* block, BlockParts& parts);

/// The inverse, bit for bit unless d or dmin is NaN. @pre d and dmin are numbers that the file's type holds; scales, offsets
/// and codes are within the format's bits
void put_together(BlockFormat format, const BlockParts& parts, std::byte* block);

/// n elements of whole blocks as fp32: scale * code_value + offset. All functions here are safe to call from any thread.
/// @pre n is a multiple of the block's elements
void dequantize_row(BlockFormat format, const std::byte* blocks, size_t n, float* out);

}  // namespace kilin

// Block-quantised weights in the layout of the register tiles: panels of 16 output rows, with codes ordered so that one load
// serves 16 rows. A product reads a panel from its first byte to its last, so that a matrix is one stream, which a CPU
// prefetches by itself; it would not if the stream jumped.
//
//   matrix  := panel{ceil(rows / 16)}
//   panel   := section{ceil(cols / 256)}
//   section := block{256 / elements}, zero bytes up to a multiple of 64, span{8}   256 columns; the last one's spans may be
//              fewer, and its blocks are zero bytes then
//   span    := plane(8){8} | plane(4){4} | plane(4){4} plane(2){2} | plane(4){4} plane(1) | plane(2){2} plane(1) | plane(2){2}
//              for codes of 8, 4, 6, 5, 3 and 2 bits: 32 columns in `bits` vectors, the code's lowest bits first
//   plane(b) := 64 bytes. Byte 4 r + i belongs to row r. Its bits [b j, b j + b) are those of column 4 q + i of the span, where
//             quad q = v * 8 / b + j, in the plane's vector v: masked and shifted, a vector is 16 rows of 4 consecutive columns
//   block   := d [dmin] scale{groups} offset{groups}   what BlockParts holds, as arrays over the 16 rows:
//   d, dmin := fp16[16]; mxfp4's d is its exponent byte [16]
//   scale, offset := int8[16]; only in the formats of 256 elements
//   dmin, offset  := only in formats with offsets
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/storage_format.h"
#include "kernels/quant/block_layout.h"
#include "kernels/quant/blocks.h"

namespace kilin {

inline constexpr size_t kPanelRows = 16;
inline constexpr size_t kPanelVector = 64;  ///< bytes: 16 rows x 4 columns at 8 bits
inline constexpr size_t kSpanColumns = 32;  ///< the smallest number of columns that fills whole vectors of every plane
inline constexpr size_t kSectionColumns = 256;
inline constexpr size_t kSectionSpans = kSectionColumns / kSpanColumns;

/// Goes up whenever a panel's bytes change; a file of packed weights is valid for one version only.
inline constexpr uint32_t kPanelVersion = 2;

/// Where the parts of a format's panel are, in bytes.
struct PanelLayout {
  constexpr explicit PanelLayout(BlockFormat format) {
    const BlockTraits& traits = block_layout(format).traits;
    const size_t d = format == BlockFormat::mxfp4 ? kPanelRows : kPanelRows * sizeof(f16);
    const size_t arrays = traits.elements == 256 ? traits.elements / traits.group * kPanelRows : 0;
    dmin = d;
    scales = dmin + (traits.has_offsets ? kPanelRows * sizeof(f16) : 0);
    offsets = scales + arrays;
    block = offsets + (traits.has_offsets ? arrays : 0);
    section_blocks = kSectionColumns / traits.elements;
    codes = (section_blocks * block + kPanelVector - 1) / kPanelVector * kPanelVector;
    span = traits.bits * kPanelVector;
    section = codes + kSectionSpans * span;
  }

  /// Of a panel. @pre whole spans
  constexpr size_t bytes(size_t cols) const {
    const size_t rest = cols % kSectionColumns / kSpanColumns;
    return cols / kSectionColumns * section + (rest == 0 ? 0 : codes + rest * span);
  }
  constexpr size_t span_at(size_t s) const { return s / kSectionSpans * section + codes + s % kSectionSpans * span; }
  constexpr size_t block_at(size_t b) const { return b / section_blocks * section + b % section_blocks * block; }

  size_t dmin;            ///< in a block
  size_t scales;          ///< in a block; [groups][16]
  size_t offsets;         ///< in a block; [groups][16]
  size_t block;           ///< of one block's scales
  size_t section_blocks;  ///< blocks of a section
  size_t codes;           ///< in a section
  size_t span;            ///< of 32 columns' codes
  size_t section;         ///< of 256 columns
};

/// Bytes of a matrix in panels; each panel is a multiple of 64. The last panel is filled up with zero rows.
size_t panel_bytes(BlockFormat format, size_t rows, size_t cols);

/// Packs the rows of one panel: 16, or fewer in a matrix's last.
/// @param rows row-major blocks as in the file: `count` rows of this panel. @param out where this panel goes, 64-byte aligned
void pack_panel(BlockFormat format, size_t cols, const std::byte* rows, size_t count, std::byte* out);

/// Block `block` of row `row` of a panel, as take_apart gives it from the file's bytes.
void take_apart_panel(BlockFormat format, const std::byte* panel, size_t row, size_t block, BlockParts& parts);

}  // namespace kilin

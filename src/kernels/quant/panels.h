// Block-quantised weights by register tile: panels of 16 output rows, whose codes stand so that one load serves 16 rows. Every
// part is a multiple of 64 bytes or of 16 rows:
//
//   matrix := panel{ceil(rows / 16)}
//   panel  := span{cols / 32}  block{cols / elements}  zero bytes up to a multiple of 64
//   span   := plane(8){8} | plane(4){4} | plane(4){4} plane(2){2} | plane(4){4} plane(1) | plane(2){2} plane(1) | plane(2){2}
//             for codes of 8, 4, 6, 5, 3 and 2 bits: 32 columns in `bits` vectors, the code's lowest bits first
//   plane(b) := 64 bytes. Byte 4 r + i belongs to row r. Its bits [b j, b j + b) are those of column 4 q + i of the span, where
//             quad q = v * 8 / b + j, in the plane's vector v: masked and shifted, a vector is 16 rows of 4 consecutive columns
//   block  := d [dmin] scale{groups} offset{groups}   what BlockParts holds, as arrays over the 16 rows:
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
inline constexpr size_t kSpanColumns = 32;  ///< the least that every plane holds whole

/// Changes whenever a panel's bytes would: what a file of packed weights is valid for.
inline constexpr uint32_t kPanelVersion = 1;

/// Where the parts of a format's panel stand, in bytes.
struct PanelLayout {
  /// @pre whole blocks
  constexpr PanelLayout(BlockFormat format, size_t cols) {
    const BlockTraits& traits = block_layout(format).traits;
    const size_t d = format == BlockFormat::mxfp4 ? kPanelRows : kPanelRows * sizeof(f16);
    const size_t arrays = traits.elements == 256 ? traits.elements / traits.group * kPanelRows : 0;
    span = traits.bits * kPanelVector;
    blocks = cols / kSpanColumns * span;
    dmin = d;
    scales = dmin + (traits.has_offsets ? kPanelRows * sizeof(f16) : 0);
    offsets = scales + arrays;
    block = offsets + (traits.has_offsets ? arrays : 0);
    bytes = blocks + (cols / traits.elements * block + kPanelVector - 1) / kPanelVector * kPanelVector;
  }

  size_t span;     ///< of 32 columns' codes
  size_t blocks;   ///< where the scales begin
  size_t block;    ///< of one block's scales
  size_t dmin;     ///< in a block
  size_t scales;   ///< in a block; [groups][16]
  size_t offsets;  ///< in a block; [groups][16]
  size_t bytes;    ///< of a panel
};

/// Bytes of a matrix in panels; each panel is a multiple of 64. A last panel that is not full is filled up with zero rows.
size_t panel_bytes(BlockFormat format, size_t rows, size_t cols);

/// Packs the rows of one panel: 16, or fewer in a matrix's last.
/// @param rows row-major blocks as in the file: `count` rows of this panel. @param out where this panel goes, 64-byte aligned
void pack_panel(BlockFormat format, size_t cols, const std::byte* rows, size_t count, std::byte* out);

/// Block `block` of row `row` of a panel, as take_apart gives it from the file's bytes.
void take_apart_panel(BlockFormat format, size_t cols, const std::byte* panel, size_t row, size_t block, BlockParts& parts);

}  // namespace kilin

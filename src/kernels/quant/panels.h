// Block-quantised weights by register tile: panels of 16 output rows, whose codes stand so that one load serves 16 rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/storage_format.h"

namespace kilin {

inline constexpr size_t kPanelRows = 16;

/// Changes whenever a panel's bytes would: what a file of packed weights is valid for.
inline constexpr uint32_t kPanelVersion = 1;

/// Bytes of a matrix in panels; each panel is a multiple of 64. A last panel that is not full is filled up with zero rows.
size_t panel_bytes(BlockFormat format, size_t rows, size_t cols);

/// Packs the rows of panel `panel` (16 of them, fewer in the last).
/// @param rows row-major blocks as in the file: `count` rows of this panel. @param out where this panel goes, 64-byte aligned
void pack_panel(BlockFormat format, size_t cols, const std::byte* rows, size_t count, std::byte* out);

}  // namespace kilin

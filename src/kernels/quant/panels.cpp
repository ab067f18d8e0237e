#include "kernels/quant/panels.h"

#include "kernels/quant/blocks.h"

namespace kilin {

namespace {

size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Scales of one block of 16 rows.
size_t scale_bytes(BlockFormat format) {
  const BlockTraits& traits = block_traits(format);
  const size_t terms = traits.has_offsets ? 2 : 1;
  if (format == BlockFormat::mxfp4) return kPanelRows;
  const size_t groups = traits.elements == 256 ? traits.elements / traits.group : 0;  // blocks of 32 have no second level
  return kPanelRows * terms * (2 + groups);
}

}  // namespace

size_t panel_bytes(BlockFormat format, size_t rows, size_t cols) {
  const BlockTraits& traits = block_traits(format);
  const size_t panels = (rows + kPanelRows - 1) / kPanelRows;
  const size_t codes = kPanelRows * cols * traits.bits / 8;
  return panels * (codes + whole_lines(cols / traits.elements * scale_bytes(format)));
}

}  // namespace kilin

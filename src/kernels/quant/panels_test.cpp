// Panels hold what the file's blocks hold.
#include "kernels/quant/panels.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/panels.h"

namespace kilin {
namespace {

using testing::Blocks;

void expect_same_parts(BlockFormat format, const BlockParts& a, const BlockParts& b) {
  const BlockTraits& traits = block_traits(format);
  EXPECT_EQ(std::memcmp(&a.d, &b.d, sizeof a.d), 0) << a.d << " " << b.d;
  EXPECT_EQ(std::memcmp(&a.dmin, &b.dmin, sizeof a.dmin), 0) << a.dmin << " " << b.dmin;
  for (size_t s = 0; s < traits.elements / traits.group; ++s) {
    EXPECT_EQ(a.scales[s], b.scales[s]) << "group " << s;
    EXPECT_EQ(a.offsets[s], b.offsets[s]) << "group " << s;
  }
  for (size_t i = 0; i < traits.elements; ++i) ASSERT_EQ(a.codes[i], b.codes[i]) << "code " << i;
}

TEST(Panels, HoldEveryPartOfEveryBlock) {
  for (BlockFormat format : kBlockFormats)
    for (size_t rows : {16, 1, 37}) {
      const size_t elements = block_size(format).elements, cols = 3 * elements;
      const Blocks blocks(format, rows, cols, 7);
      const testing::Panels panels(blocks);
      for (size_t r = 0; r < rows; ++r)
        for (size_t b = 0; b < 3; ++b) {
          SCOPED_TRACE(std::string(to_string(format)) + " row " + std::to_string(r) + " block " + std::to_string(b));
          BlockParts expected, actual;
          take_apart(format, blocks.matrix().row(r) + b * block_size(format).bytes, expected);
          take_apart_panel(format, panels.matrix().panel(r / kPanelRows), r % kPanelRows, b, actual);
          expect_same_parts(format, actual, expected);
        }
    }
}

TEST(Panels, HoldZeroRowsWhereTheMatrixEnds) {
  for (BlockFormat format : kBlockFormats) {
    const size_t cols = block_size(format).elements;
    const testing::Panels panels(Blocks(format, 17, cols, 3));
    for (size_t r = 1; r < kPanelRows; ++r) {
      BlockParts parts;
      take_apart_panel(format, panels.matrix().panel(1), r, 0, parts);
      for (size_t i = 0; i < cols; ++i) {
        const size_t s = i / block_traits(format).group;
        EXPECT_EQ(parts.scale(s) * static_cast<float>(code_value(format, parts.codes[i])) + parts.offset(s), 0.f)
            << to_string(format) << " row " << r;
      }
    }
  }
}

TEST(Panels, PackAnyBytes) {  // of a hostile file: the result may be NaN, but stays within the panel
  for (BlockFormat format : kBlockFormats) {
    const size_t cols = 512;
    const std::vector<std::byte> rows(16 * StorageFormat(format).bytes_of(cols), std::byte{0xff});
    std::vector<std::byte> panel(panel_bytes(format, 16, cols) + 64, std::byte{0x5a});
    pack_panel(format, cols, rows.data(), 16, panel.data());
    for (size_t i = panel.size() - 64; i < panel.size(); ++i) EXPECT_EQ(panel[i], std::byte{0x5a}) << to_string(format);
  }
}

TEST(Panels, TakeHardlyMoreThanTheFile) {
  for (BlockFormat format : kBlockFormats) {
    const double file = static_cast<double>(StorageFormat(format).bytes_of(size_t{2304} * 64));
    const double most = format == BlockFormat::q2_k ? 1.20 : format == BlockFormat::q3_k ? 1.06 : 1.03;
    EXPECT_LE(static_cast<double>(panel_bytes(format, 64, 2304)), file * most) << to_string(format);
    EXPECT_EQ(panel_bytes(format, 64, 2304) % kPanelVector, 0u);
    EXPECT_EQ(panel_bytes(format, 1, 32 * block_size(format).elements),
              panel_bytes(format, 16, 32 * block_size(format).elements));
  }
}

}  // namespace
}  // namespace kilin

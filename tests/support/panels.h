// Block-quantised matrices with random content, by row and in panels, for tests and benchmarks of their products.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/dtype.h"
#include "core/random.h"
#include "core/storage_format.h"
#include "core/tensor.h"
#include "kernels/packed_matrix.h"
#include "kernels/quant/blocks.h"

namespace kilin::testing {

/// Rows of random blocks, as in a file: codes and sub-scales of any bits, d and dmin moderate numbers of both signs.
class Blocks {
 public:
  Blocks(BlockFormat format, size_t rows, size_t cols, uint64_t seed)
      : bytes_(rows * StorageFormat(format).bytes_of(cols)), matrix_(format, rows, cols, bytes_.data()) {
    const BlockSize size = block_size(format);
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(random_bits(seed, i));
    BlockParts parts;
    for (size_t b = 0; b < bytes_.size() / size.bytes; ++b) {
      std::byte* block = bytes_.data() + b * size.bytes;
      const auto number = [&](uint64_t which) {
        return static_cast<float>(random_uniform(seed + which, b) + 0.1) * (b % 3 == 0 ? -0.01f : 0.01f);
      };
      take_apart(format, block, parts);
      parts.d = format == BlockFormat::mxfp4 ? 1.f / static_cast<float>(1u << (random_bits(seed + 1, b) % 9))
                                             : to_float(to_f16(number(1)));
      if (block_traits(format).has_offsets) parts.dmin = to_float(to_f16(number(2)));
      put_together(format, parts, block);
    }
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  const PackedMatrix& matrix() const { return matrix_; }

  /// [rows, cols] of dequantize_row.
  std::vector<float> values() const {
    std::vector<float> all(matrix_.rows() * matrix_.cols());
    for (size_t r = 0; r < matrix_.rows(); ++r)
      dequantize_row(matrix_.format().block(), matrix_.row(r), matrix_.cols(), all.data() + r * matrix_.cols());
    return all;
  }

 private:
  std::vector<std::byte> bytes_;
  PackedMatrix matrix_;
};

/// The same in panels.
class Panels {
 public:
  explicit Panels(const Blocks& blocks) : Panels(blocks.matrix()) {}
  explicit Panels(const PackedMatrix& rows)
      : data_(DType::u8, {panel_bytes(rows.format().block(), rows.rows(), rows.cols())}),
        matrix_(PackedMatrix::of_panels(rows.format().block(), rows.rows(), rows.cols(), data_.data())) {
    const BlockFormat format = rows.format().block();
    const size_t bytes = PanelLayout(format).bytes(rows.cols());
    for (size_t r = 0; r < rows.rows(); r += kPanelRows)
      pack_panel(format, rows.cols(), rows.row(r), std::min(kPanelRows, rows.rows() - r),
                 static_cast<std::byte*>(data_.data()) + r / kPanelRows * bytes);
  }
  Panels(const Panels&) = delete;
  Panels& operator=(const Panels&) = delete;

  const PackedMatrix& matrix() const { return matrix_; }

 private:
  Tensor data_;
  PackedMatrix matrix_;
};

}  // namespace kilin::testing

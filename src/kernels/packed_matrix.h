// Weights as the matrix kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/storage_format.h"
#include "kernels/quant/panels.h"

namespace kilin {

/// A weight matrix W of [rows, cols] = [out_features, in_features], as the checkpoint stores linear layers: y = x W^T.
///
/// Elements of a DType are stored row by row as in the checkpoint, so that they are used where the file is mapped. Blocks are
/// stored row by row where single rows are gathered (the embedding), and in panels of 16 rows where products read them
/// (quant/panels.h). A PackedMatrix does not own its bytes: the mapped file or Tensor that does must outlive it. Rows need only
/// be aligned to their element; panels start at multiples of 64 bytes.
class PackedMatrix {
 public:
  enum class Layout : uint8_t { Rows, Panels };

  PackedMatrix() = default;
  PackedMatrix(StorageFormat format, size_t rows, size_t cols, const void* data)
      : data_(static_cast<const std::byte*>(data)), rows_(rows), cols_(cols), format_(format) {}

  /// @param data panel_bytes(format, rows, cols) bytes that pack_panel wrote, one panel after the other
  static PackedMatrix of_panels(BlockFormat format, size_t rows, size_t cols, const void* data) {
    PackedMatrix matrix(format, rows, cols, data);
    matrix.layout_ = Layout::Panels;
    return matrix;
  }

  StorageFormat format() const { return format_; }
  Layout layout() const { return layout_; }
  bool has_panels() const { return layout_ == Layout::Panels; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  size_t bytes() const { return has_panels() ? panel_bytes(format_.block(), rows_, cols_) : rows_ * bytes_per_row(); }
  const std::byte* data() const { return data_; }

  /// @pre !has_panels()
  size_t bytes_per_row() const { return assert(!has_panels()), format_.bytes_of(cols_); }
  const std::byte* row(size_t r) const { return data_ + r * bytes_per_row(); }

  /// Rows [16 p, 16 p + 16). @pre has_panels()
  const std::byte* panel(size_t p) const { return data_ + p * PanelLayout(format_.block()).bytes(cols_); }

  /// Rows [begin, end): one head's or one rank's share. Copies nothing. @pre !has_panels()
  PackedMatrix slice_rows(size_t begin, size_t end) const { return {format_, end - begin, cols_, row(begin)}; }

 private:
  const std::byte* data_ = nullptr;
  size_t rows_ = 0;
  size_t cols_ = 0;
  StorageFormat format_ = DType::bf16;
  Layout layout_ = Layout::Rows;
};

}  // namespace kilin

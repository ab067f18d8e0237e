// Weights as the matrix kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/dtype.h"
#include "core/tensor.h"

namespace kilin {

/// How the elements of a weight matrix are stored. Plain formats are row-major, as in the checkpoint, so that they are used
/// where the file is mapped; block-quantised ones will be stored by register tile.
enum class WeightFormat : uint8_t { f32, f16, bf16 };

std::string_view to_string(WeightFormat format);

/// A weight matrix W of [rows, cols] = [out_features, in_features], as the checkpoint stores linear layers: y = x W^T.
///
/// It refers to bytes that a mapped file or a Tensor owns and which must outlive it. Slicing copies nothing. Rows need not be
/// aligned to more than their element.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(WeightFormat format, size_t rows, size_t cols, const void* data)
      : data_(static_cast<const std::byte*>(data)), rows_(rows), cols_(cols), format_(format) {}

  WeightFormat format() const { return format_; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  size_t bytes_per_row() const { return cols_ * (format_ == WeightFormat::f32 ? 4 : 2); }
  size_t bytes() const { return rows_ * bytes_per_row(); }
  const std::byte* data() const { return data_; }
  const std::byte* row(size_t r) const { return data_ + r * bytes_per_row(); }

  /// Rows [begin, end): one head's or one rank's share.
  PackedMatrix slice_rows(size_t begin, size_t end) const { return {format_, end - begin, cols_, row(begin)}; }

 private:
  const std::byte* data_ = nullptr;
  size_t rows_ = 0;
  size_t cols_ = 0;
  WeightFormat format_ = WeightFormat::bf16;
};

}  // namespace kilin

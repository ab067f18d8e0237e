// A matrix that somebody else owns: what every kernel takes and gives.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <type_traits>

namespace kilin {

/// Rows of `cols` contiguous elements, `stride` elements apart. Copying it copies no data.
template <typename T>
class MatView {
 public:
  MatView() = default;
  MatView(T* data, size_t rows, size_t cols) : MatView(data, rows, cols, cols) {}
  MatView(T* data, size_t rows, size_t cols, size_t stride) : data_(data), rows_(rows), cols_(cols), stride_(stride) {}

  /// A view to read from a view to write.
  template <typename U>
  requires(std::is_const_v<T>&& std::is_same_v<std::remove_const_t<T>, U>) MatView(const MatView<U>& other)
      : MatView(other.data(), other.rows(), other.cols(), other.stride()) {}  // NOLINT

  T* data() const { return data_; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  size_t stride() const { return stride_; }

  T* row(size_t r) const {
    assert(r < rows_);
    return data_ + r * stride_;
  }
  std::span<T> operator[](size_t r) const { return {row(r), cols_}; }

  MatView rows(size_t begin, size_t end) const {
    assert(begin <= end && end <= rows_);
    return {data_ + begin * stride_, end - begin, cols_, stride_};
  }
  MatView columns(size_t begin, size_t end) const {
    assert(begin <= end && end <= cols_);
    return {data_ + begin, rows_, end - begin, stride_};
  }

 private:
  T* data_ = nullptr;
  size_t rows_ = 0;
  size_t cols_ = 0;
  size_t stride_ = 0;
};

}  // namespace kilin

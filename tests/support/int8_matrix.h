// Owns activations as int8, in rows that start at odd places.
#pragma once

#include <vector>

#include "kernels/int8_rows.h"
#include "support/kernels.h"

namespace kilin::testing {

class Int8Matrix {
 public:
  /// Quantises x with quantize_rows of `table`.
  explicit Int8Matrix(const Matrix& x, const KernelTable& table = naive_kernels())
      : count_(x.view().rows()), cols_(x.view().cols()) {
    table.quantize_rows(x.view(), rows());
  }
  /// Quantises random values in [-1, 1).
  Int8Matrix(size_t rows, size_t cols, Random& random) : Int8Matrix(Matrix(rows, cols, random)) {}

  Int8Rows rows() const {
    return {view(values_, cols_), view(scales_, (cols_ + kInt8Group - 1) / kInt8Group),
            view(sums_, (cols_ + kInt8SumGroup - 1) / kInt8SumGroup)};
  }

  std::vector<int8_t> values() const { return elements(rows().values); }
  std::vector<float> scales() const { return elements(rows().scales); }
  std::vector<int16_t> sums() const { return elements(rows().sums); }

 private:
  static constexpr size_t kGap = 3;

  template <typename T>
  MatView<T> view(std::vector<T>& data, size_t cols) const {
    data.resize(1 + count_ * (cols + kGap));
    return {data.data() + 1, count_, cols, cols + kGap};
  }
  template <typename T>
  static std::vector<T> elements(MatView<T> matrix) {
    std::vector<T> all;
    for (size_t r = 0; r < matrix.rows(); ++r) all.insert(all.end(), matrix[r].begin(), matrix[r].end());
    return all;
  }

  size_t count_, cols_;
  mutable std::vector<int8_t> values_;  // mutable, because Int8Rows can be written through
  mutable std::vector<float> scales_;
  mutable std::vector<int16_t> sums_;
};

}  // namespace kilin::testing

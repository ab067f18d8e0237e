// Activations quantised to int8, which the integer products read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/mat_view.h"

namespace kilin {

/// Columns that share one activation scale. It divides every rank's share of a row, so that scales do not depend on the number
/// of ranks.
inline constexpr size_t kInt8Group = 256;
/// Columns that each of `Int8Rows::sums` adds up.
inline constexpr size_t kInt8SumGroup = 16;

/// x[t, k] is about values[t, k] * scales[t, k / 256]; `quantize_rows` writes them and `matmul_int8` reads them.
struct Int8Rows {
  MatView<int8_t> values;  ///< [T, K], -127 .. 127
  MatView<float> scales;   ///< [T, ceil(K / 256)] largest magnitude of the group / 127
  MatView<int16_t> sums;   ///< [T, ceil(K / 16)] of values, 16 columns each

  size_t rows() const { return values.rows(); }
  size_t cols() const { return values.cols(); }
  Int8Rows slice(size_t begin, size_t end) const {
    return {values.rows(begin, end), scales.rows(begin, end), sums.rows(begin, end)};
  }
};

/// A group whose largest magnitude is below this counts as zero: 127 / magnitude must stay finite.
inline constexpr float kInt8LeastMagnitude = 0x1p-100f;

}  // namespace kilin

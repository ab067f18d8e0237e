// Activations as int8, and products with them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/naive/naive.h"
#include "kernels/quant/blocks.h"

namespace kilin::naive {

namespace {

// Quantises one group of n columns. Returns its scale.
float quantize_group(const float* x, size_t n, int8_t* values) {
  std::fill_n(values, n, int8_t{0});
  float most = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
    most = std::max(most, std::abs(x[i]));
  }
  if (most < kInt8LeastMagnitude) return 0;
  const float inverse = 127.f / most;
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
  return most / 127.f;
}

// What one row of x adds to f over one weight block of n columns: `scaled` its groups' terms, `shifted` its offsets' integer.
struct BlockSum {
  const BlockFormat format;
  const BlockTraits& traits;
  const BlockParts& parts;
  const int8_t* values;

  float scaled(float f) const {
    for (size_t s = 0; s < traits.elements / traits.group; ++s) {
      int32_t sum = 0;
      for (size_t i = s * traits.group; i < (s + 1) * traits.group; ++i) sum += code_value(format, parts.codes[i]) * values[i];
      f = std::fma(parts.scale(s), static_cast<float>(sum), f);
    }
    return f;
  }
  int32_t shifted() const {
    int32_t sum = 0;
    for (size_t i = 0; i < traits.elements; ++i) sum += parts.offsets[i / traits.group] * values[i];
    return sum;
  }
};

}  // namespace

void quantize_rows(MatView<const float> x, const Int8Rows& out) noexcept {
  for (size_t t = 0; t < x.rows(); ++t) {
    for (size_t k = 0; k < x.cols(); k += kInt8Group)
      out.scales.row(t)[k / kInt8Group] =
          quantize_group(x.row(t) + k, std::min(kInt8Group, x.cols() - k), out.values.row(t) + k);
    for (size_t k = 0; k < x.cols(); k += kInt8SumGroup) {
      int16_t sum = 0;
      for (size_t i = k; i < std::min(k + kInt8SumGroup, x.cols()); ++i) sum = static_cast<int16_t>(sum + out.values.row(t)[i]);
      out.sums.row(t)[k / kInt8SumGroup] = sum;
    }
  }
}

void matmul_int8(const PackedMatrix& w, const Int8Rows& x, size_t begin, size_t end, MatView<float> y) noexcept {
  const BlockFormat format = w.format().block();
  const BlockTraits& traits = block_traits(format);
  BlockParts parts[kInt8Group / kSpanColumns];  // of one row and group
  for (size_t n = begin; n < end; ++n) {
    for (size_t m = 0; m < x.rows(); ++m) y.row(m)[n] = 0;
    for (size_t k = 0; k < w.cols(); k += kInt8Group) {
      const size_t blocks = std::min(kInt8Group, w.cols() - k) / traits.elements;
      for (size_t b = 0; b < blocks; ++b)
        take_apart_panel(format, w.panel(n / kPanelRows), n % kPanelRows, k / traits.elements + b, parts[b]);
      for (size_t m = 0; m < x.rows(); ++m) {
        float f = 0;
        for (size_t b = 0; b < blocks; ++b)
          f = BlockSum{format, traits, parts[b], x.values.row(m) + k + b * traits.elements}.scaled(f);
        for (size_t b = 0; b < blocks && traits.has_offsets; ++b) {
          const BlockSum sum{format, traits, parts[b], x.values.row(m) + k + b * traits.elements};
          f = std::fma(parts[b].dmin, static_cast<float>(sum.shifted()), f);
        }
        y.row(m)[n] = std::fma(x.scales.row(m)[k / kInt8Group], f, y.row(m)[n]);
      }
    }
  }
}

}  // namespace kilin::naive

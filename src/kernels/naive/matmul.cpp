// Products with a weight matrix, and rows of one.
#include <cmath>

#include "kernels/naive/naive.h"
#include "kernels/quant/blocks.h"

namespace kilin::naive {

namespace {

float to_float(float x) { return x; }  // beside those of f16 and bf16 in core/dtype.h

template <typename T>
const T* row(const PackedMatrix& w, size_t r) {
  return reinterpret_cast<const T*>(w.row(r));
}

template <typename T>
void matmul_of(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) {
  for (size_t m = 0; m < x.rows(); ++m)
    for (size_t n = begin; n < end; ++n) {
      float sum = 0;
      for (size_t k = 0; k < w.cols(); ++k) sum += x.row(m)[k] * to_float(row<T>(w, n)[k]);
      y.row(m)[n] = sum;
    }
}

// Every weight is the fp32 that dequantize_row gives; fused, so that the vector forms give the same bytes.
void matmul_of_panels(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) {
  const BlockFormat format = w.format().block();
  const BlockTraits& traits = block_traits(format);
  BlockParts parts;
  for (size_t n = begin; n < end; ++n) {
    for (size_t m = 0; m < x.rows(); ++m) y.row(m)[n] = 0;
    for (size_t k = 0; k < w.cols(); k += traits.elements) {
      take_apart_panel(format, w.panel(n / kPanelRows), n % kPanelRows, k / traits.elements, parts);
      for (size_t i = 0; i < traits.elements; ++i) {
        const size_t s = i / traits.group;
        const float weight = parts.scale(s) * static_cast<float>(code_value(format, parts.codes[i])) + parts.offset(s);
        for (size_t m = 0; m < x.rows(); ++m) y.row(m)[n] = std::fma(x.row(m)[k + i], weight, y.row(m)[n]);
      }
    }
  }
}

template <typename T>
void matmul_transposed_of(const PackedMatrix& w, MatView<const float> x, MatView<float> y) {
  for (size_t m = 0; m < x.rows(); ++m)
    for (size_t k = 0; k < w.cols(); ++k) {
      float sum = 0;
      for (size_t n = 0; n < w.rows(); ++n) sum += x.row(m)[n] * to_float(row<T>(w, n)[k]);
      y.row(m)[k] = sum;
    }
}

template <typename T>
void gather_rows_of(const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) {
  for (size_t i = 0; i < ids.size(); ++i)
    for (size_t k = 0; k < table.cols(); ++k) out.row(i)[k] = to_float(row<T>(table, static_cast<size_t>(ids[i]))[k]);
}

void gather_rows_of_blocks(const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) {
  for (size_t i = 0; i < ids.size(); ++i)
    dequantize_row(table.format().block(), table.row(static_cast<size_t>(ids[i])), table.cols(), out.row(i));
}

}  // namespace

void matmul(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) noexcept {
  if (w.has_panels()) return matmul_of_panels(w, x, begin, end, y);
  switch (w.format().dtype()) {
    case DType::f32:
      return matmul_of<float>(w, x, begin, end, y);
    case DType::f16:
      return matmul_of<f16>(w, x, begin, end, y);
    case DType::bf16:
      return matmul_of<bf16>(w, x, begin, end, y);
    default:
      return assert(false);
  }
}

void matmul_bf16(const PackedMatrix& w, MatView<const bf16> x, size_t begin, size_t end, MatView<float> y) noexcept {
  for (size_t m = 0; m < x.rows(); ++m)
    for (size_t n = begin; n < end; ++n) {
      float sum = 0;
      for (size_t k = 0; k < w.cols(); k += 2) {
        if (k + 1 < w.cols()) sum = std::fma(to_float(x.row(m)[k + 1]), to_float(row<bf16>(w, n)[k + 1]), sum);
        sum = std::fma(to_float(x.row(m)[k]), to_float(row<bf16>(w, n)[k]), sum);
      }
      y.row(m)[n] = sum;
    }
}

void matmul_transposed(const PackedMatrix& w, MatView<const float> x, MatView<float> y) noexcept {
  switch (w.format().dtype()) {
    case DType::f32:
      return matmul_transposed_of<float>(w, x, y);
    case DType::f16:
      return matmul_transposed_of<f16>(w, x, y);
    case DType::bf16:
      return matmul_transposed_of<bf16>(w, x, y);
    default:
      return assert(false);
  }
}

void gather_rows(const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) noexcept {
  if (table.format().is_block()) return gather_rows_of_blocks(table, ids, out);
  switch (table.format().dtype()) {
    case DType::f32:
      return gather_rows_of<float>(table, ids, out);
    case DType::f16:
      return gather_rows_of<f16>(table, ids, out);
    case DType::bf16:
      return gather_rows_of<bf16>(table, ids, out);
    default:
      return assert(false);
  }
}

}  // namespace kilin::naive

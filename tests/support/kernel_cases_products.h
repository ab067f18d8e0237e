// Cases of the products; see kernel_cases.h.
#pragma once

#include <limits>

#include "support/int8_matrix.h"
#include "support/kernel_choices.h"
#include "support/panels.h"

namespace kilin::testing {

// Weights by row in a DType, at any address, and their values.
struct PlainWeights {
  PlainWeights(DType type, size_t rows, size_t cols, const std::vector<float>& from)
      : bytes(4 + rows * cols * 4), values(from) {
    const size_t size = size_of(type);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto put = [&](auto stored) { std::memcpy(bytes.data() + (i + 1) * size, &stored, size); };
      if (type == DType::f32) put(values[i]);
      if (type == DType::f16) put(to_f16(values[i])), values[i] = to_float(to_f16(values[i]));
      if (type == DType::bf16) put(to_bf16(values[i])), values[i] = to_float(to_bf16(values[i]));
    }
    matrix = PackedMatrix(type, rows, cols, bytes.data() + size);
  }
  std::vector<std::byte> bytes;
  std::vector<float> values;
  PackedMatrix matrix;
};

inline DType plain_type(Choices& c) { return c.one_of({DType::f32, DType::f16, DType::bf16}); }
inline float most_of(DType type) { return type == DType::f16 ? 6e4f : 1e15f; }
inline BlockFormat block_format(Choices& c) { return kBlockFormats[c.integer(0, std::size(kBlockFormats) - 1)]; }
inline size_t block_columns(Choices& c, BlockFormat format) {
  const size_t elements = block_size(format).elements;
  return elements * c.integer(1, elements == 256 ? 2 : 12);
}

// Sum of |x| |w|: what errors of a product of one output are relative to, each addition in either form rounding once.
inline double product_error(const Matrix& x, const std::vector<float>& w, size_t m, size_t n) {
  const size_t K = x.view().cols();
  double sum = 0;
  for (size_t k = 0; k < K; ++k) sum += std::fabs(double{x.at(m, k)} * double{w[n * K + k]});
  return 2 * static_cast<double>(K + 4) * (kEps * sum + 1e-37);
}

// `product(table, first row, last row, begin, end, y)` for a form and the naive one, then with a cut through rows and columns.
template <typename Product, typename Error>
void expect_product(Choices& c, size_t M, size_t N, Product&& product, Error&& error) {
  const size_t row = c.integer(0, M), column = c.integer(0, N), gap = c.integer(0, 5);
  Matrix naive(M, N, gap);
  product(naive_kernels(), 0, M, 0, N, naive);
  for (const Form& form : isa_forms()) {
    Matrix y(M, N, gap), cut(M, N, gap);
    product(form.table, 0, M, 0, N, y);
    expect_gaps(y, form.name);
    expect_near(
        y.values(), naive.values(), [&](size_t i) { return error(form, i / N, i % N); }, form.name);
    for (auto [first, last] : {std::pair<size_t, size_t>{0, row}, {row, M}})
      for (auto [begin, end] : {std::pair<size_t, size_t>{column, N}, {0, column}})
        product(form.table, first, last, begin, end, cut);
    expect_bytes(cut.values(), y.values(), form.name + " cut");
  }
}

template <>
inline void kernel_case<&KernelTable::matmul>(Choices& c) {
  const size_t M = c.integer(0, 20), N = c.integer(1, 70);
  const auto run = [&](const PackedMatrix& w, const std::vector<float>& values, const Matrix& x) {
    expect_product(
        c, M, N,
        [&](const KernelTable& table, size_t first, size_t last, size_t begin, size_t end, Matrix& y) {
          table.matmul(w, x.view().rows(first, last), begin, end, y.view().rows(first, last));
        },
        [&](const Form&, size_t m, size_t n) { return product_error(x, values, m, n); });
  };
  if (c.chance()) {
    const BlockFormat format = block_format(c);
    const Blocks blocks(format, N, block_columns(c, format), c.integer(0, 255));
    const Panels panels(blocks);
    return run(panels.matrix(), blocks.values(), c.matrix(M, blocks.matrix().cols(), 1e15f));
  }
  const size_t K = c.integer(1, 300);
  const DType type = plain_type(c);
  const PlainWeights w(type, N, K, c.values(N * K, most_of(type)));
  run(w.matrix, w.values, c.matrix(M, K, 1e15f));
}

template <>
inline void kernel_case<&KernelTable::quantize_rows>(Choices& c) {
  const size_t rows = c.integer(0, 5), cols = c.integer(1, 600);
  Matrix x = c.matrix(rows, cols, c.one_of({1.0f, 1e30f, 3e38f, 1e-20f, 1e-33f}));
  if (rows > 0 && c.chance())
    x.at(c.integer(0, rows - 1), c.integer(0, cols - 1)) =
        c.one_of({std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::nanf("")});
  const Int8Matrix naive(x);
  for (const Form& form : isa_forms()) {
    const Int8Matrix ours(x, form.table);
    expect_bytes(ours.values(), naive.values(), form.name + " values");
    expect_bytes(ours.sums(), naive.sums(), form.name + " sums");
    const std::vector<float> scales = ours.scales(), expected = naive.scales();
    for (size_t i = 0; i < scales.size(); ++i)
      if (scales[i] != expected[i] && !(std::isnan(scales[i]) && std::isnan(expected[i])))
        throw KernelDiffers(fmt::format("{}: scale {} is {}; naive {}", form.name, i, scales[i], expected[i]));
  }
}

template <>
inline void kernel_case<&KernelTable::matmul_int8>(Choices& c) {
  const size_t M = c.integer(0, 14), N = c.integer(1, 150);
  const BlockFormat format = block_format(c);
  const Blocks blocks(format, N, block_columns(c, format), c.integer(0, 255));
  const Panels panels(blocks);
  const Int8Matrix x(c.matrix(M, blocks.matrix().cols(), 1e15f));
  double largest_weight = 0;
  for (float w : blocks.values()) largest_weight = std::max(largest_weight, std::fabs(double{w}));
  expect_product(
      c, M, N,
      [&](const KernelTable& table, size_t first, size_t last, size_t begin, size_t end, Matrix& y) {
        table.matmul_int8(panels.matrix(), x.rows().slice(first, last), begin, end, y.view().rows(first, last));
      },
      [&](const Form& form, size_t m, size_t) {
        if (form.name != "scalar") return 0.0;  // whose fma rounds twice
        double sum = 0;
        for (size_t k = 0; k < x.rows().cols(); ++k)
          sum += std::fabs(static_cast<double>(x.rows().values[m][k]) * double{x.rows().scales[m][k / kInt8Group]});
        return 1e-5 * sum * largest_weight + 1e-35;
      });
}

template <>
inline void kernel_case<&KernelTable::matmul_bf16>(Choices& c) {
  const size_t M = c.integer(0, 20), N = c.integer(1, 40), K = c.integer(1, 300), gap = c.integer(0, 5);
  const PlainWeights w(DType::bf16, N, K, c.values(N * K, 1e15f));
  Matrix x = c.matrix(M, K, 1e15f);
  std::vector<bf16> rounded(1 + M * (K + gap));
  for (size_t m = 0; m < M; ++m)
    for (size_t k = 0; k < K; ++k) x.at(m, k) = to_float(rounded[1 + m * (K + gap) + k] = to_bf16(x.at(m, k)));
  const MatView<const bf16> rows(rounded.data() + 1, M, K, K + gap);
  expect_product(
      c, M, N,
      [&](const KernelTable& table, size_t first, size_t last, size_t begin, size_t end, Matrix& y) {
        table.matmul_bf16(w.matrix, rows.rows(first, last), begin, end, y.view().rows(first, last));
      },
      [&](const Form&, size_t m, size_t n) { return product_error(x, w.values, m, n); });
}

template <>
inline void kernel_case<&KernelTable::matmul_transposed>(Choices& c) {
  const size_t M = c.integer(0, 8), N = c.integer(1, 40), K = c.integer(1, 150);
  const DType type = plain_type(c);
  const PlainWeights w(type, N, K, c.values(N * K, most_of(type)));
  std::vector<float> transposed(K * N);
  for (size_t i = 0; i < w.values.size(); ++i) transposed[i % K * N + i / K] = w.values[i];
  const Matrix x = c.matrix(M, N, 1e15f);
  Matrix naive(M, K);
  naive_kernels().matmul_transposed(w.matrix, x.view(), naive.view());
  for (const Form& form : isa_forms()) {
    Matrix y(M, K), alone(M, K);
    form.table.matmul_transposed(w.matrix, x.view(), y.view());
    expect_gaps(y, form.name);
    expect_near(
        y.values(), naive.values(), [&](size_t i) { return product_error(x, transposed, i / K, i % K); }, form.name);
    for (size_t m = 0; m < M; ++m) form.table.matmul_transposed(w.matrix, x.view().rows(m, m + 1), alone.view().rows(m, m + 1));
    expect_bytes(alone.values(), y.values(), form.name + " alone");
  }
}

template <>
inline void kernel_case<&KernelTable::gather_rows>(Choices& c) {
  const size_t rows = c.integer(1, 9);
  std::vector<int32_t> ids(c.integer(0, 6));
  for (int32_t& id : ids) id = static_cast<int32_t>(c.integer(0, rows - 1));
  const auto run = [&](const PackedMatrix& table) {
    Matrix naive(ids.size(), table.cols());
    naive_kernels().gather_rows(table, ids, naive.view());
    for (const Form& form : isa_forms()) {
      Matrix out(ids.size(), table.cols());
      form.table.gather_rows(table, ids, out.view());
      expect_gaps(out, form.name);
      expect_bytes(out.values(), naive.values(), form.name);
    }
  };
  if (c.chance()) {
    const BlockFormat format = block_format(c);
    return run(Blocks(format, rows, block_columns(c, format), c.integer(0, 255)).matrix());
  }
  const DType type = plain_type(c);
  const size_t cols = c.integer(1, 150);
  run(PlainWeights(type, rows, cols, c.values(rows * cols, most_of(type))).matrix);
}

}  // namespace kilin::testing

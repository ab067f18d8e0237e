#include "model/ops.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace kilin {

namespace {

constexpr size_t kSliceWork = 16384;  // scalar operations: a few microseconds, as much as waking a thread
constexpr size_t kTileRows = 64;      // rows of x a tile of a matrix product: they stay in L2 while weights stream past

size_t bf16_stride(size_t cols) {
  constexpr size_t kLine = 64 / sizeof(bf16);
  return ((cols + kLine - 1) / kLine | 1) * kLine;
}

size_t int8_scales(size_t cols) { return (cols + kInt8Group - 1) / kInt8Group; }
size_t int8_sums(size_t cols) { return (cols + kInt8SumGroup - 1) / kInt8SumGroup; }

// A product's first tile in the loop, and how it is cut. Neighbouring tiles share columns of the weights.
struct Tiling {
  size_t first = 0, row_tiles = 0, columns = 0;
};

template <typename F>
void for_row_slices(ExecContext& ctx, MatView<const float> x, size_t work_per_element, F f) {
  ctx.pool.parallel_for(x.rows(), grain(x.cols() * work_per_element), [&](const Slice& s) { f(s.begin, s.end); });
}

}  // namespace

StageCost cost_of_operations(const ProductRows& x, uint64_t operations) {
  if (std::holds_alternative<Int8Rows>(x)) return {.int8_operations = operations};
  if (std::holds_alternative<MatView<const bf16>>(x)) return {.bf16_operations = operations};
  return {.fp32_operations = operations};
}

size_t grain(size_t work) { return std::max<size_t>(1, kSliceWork / std::max<size_t>(1, work)); }

size_t tile_columns(size_t work_per_column, size_t columns_a_thread) {
  constexpr size_t kTiles = 8;  // that a thread has at least
  const size_t enough = (grain(work_per_column) + 63) / 64 * 64, share = columns_a_thread / kTiles / 64 * 64;
  return std::clamp<size_t>(std::max(enough, share), 64, 256);
}

void matmul(ExecContext& ctx, std::initializer_list<Product> products) {
  assert(products.size() <= kMostProducts);
  std::array<Tiling, kMostProducts> tilings;
  size_t all_columns = 0, tiles = 0;
  for (const Product& product : products) all_columns += product.w.rows();
  for (size_t i = 0; i < products.size(); ++i) {
    const auto& [w, x, y] = products.begin()[i];
    const size_t rows = y.rows();
    const size_t row_tiles = (rows + kTileRows - 1) / kTileRows;
    const size_t columns = tile_columns(w.cols() * std::min(rows, kTileRows), all_columns / ctx.pool.size());
    tilings[i] = {tiles, row_tiles, columns};
    tiles += row_tiles * ((w.rows() + columns - 1) / columns);
    if (rows > 0) ctx.count({.weight_bytes = w.bytes()});
    ctx.count(cost_of_operations(x, 2 * rows * w.rows() * w.cols()));
  }
  ctx.pool.parallel_for(tiles, 1, [&](const Slice& s) {
    for (size_t tile = s.begin; tile < s.end; ++tile) {
      size_t i = products.size() - 1;
      while (tilings[i].first > tile) --i;
      const auto& [first, row_tiles, columns] = tilings[i];
      const Product& product = products.begin()[i];
      const size_t from = (tile - first) % row_tiles * kTileRows, begin = (tile - first) / row_tiles * columns;
      matmul_tile(ctx.kernels, product, from, std::min(from + kTileRows, product.y.rows()), begin,
                  std::min(begin + columns, product.w.rows()));
    }
  });
}

void matmul_tile(const KernelTable& kernels, const Product& product, size_t from, size_t to, size_t begin, size_t end) {
  const auto& [w, x, y] = product;
  if (const auto* int8 = std::get_if<Int8Rows>(&x))
    kernels.matmul_int8(w, int8->slice(from, to), begin, end, y.rows(from, to));
  else if (const auto* rounded = std::get_if<MatView<const bf16>>(&x))
    kernels.matmul_bf16(w, rounded->rows(from, to), begin, end, y.rows(from, to));
  else
    kernels.matmul(w, std::get<MatView<const float>>(x).rows(from, to), begin, end, y.rows(from, to));
}

void round_to_bf16(ExecContext& ctx, MatView<const float> x, MatView<bf16> out) {
  for_row_slices(ctx, x, 1,
                 [&](size_t begin, size_t end) { ctx.kernels.round_to_bf16(x.rows(begin, end), out.rows(begin, end)); });
}

void quantize_rows(ExecContext& ctx, MatView<const float> x, const Int8Rows& out) {
  for_row_slices(ctx, x, 2,
                 [&](size_t begin, size_t end) { ctx.kernels.quantize_rows(x.rows(begin, end), out.slice(begin, end)); });
}

MatView<bf16> take_bf16_rows(Workspace::Frame& frame, size_t rows, size_t cols) {
  return frame.matrix<bf16>(rows, bf16_stride(cols)).columns(0, cols);
}

Int8Rows take_int8_rows(Workspace::Frame& frame, size_t rows, size_t cols) {
  return {.values = frame.matrix<int8_t>(rows, cols),
          .scales = frame.matrix(rows, int8_scales(cols)),
          .sums = frame.matrix<int16_t>(rows, int8_sums(cols))};
}

void gather_rows(ExecContext& ctx, const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) {
  ctx.count({.weight_bytes = ids.size() * table.bytes_per_row()});
  for_row_slices(ctx, out, 1, [&](size_t begin, size_t end) {
    ctx.kernels.gather_rows(table, ids.subspan(begin, end - begin), out.rows(begin, end));
  });
}

void rms_norm(ExecContext& ctx, MatView<const float> x, const float* weight, float eps, MatView<float> out) {
  for_row_slices(ctx, x, 2, [&](size_t begin, size_t end) {
    ctx.kernels.rms_norm(x.rows(begin, end), weight, eps, out.rows(begin, end));
  });
}

void silu_mul(ExecContext& ctx, MatView<float> gate, MatView<const float> up) {
  for_row_slices(ctx, gate, 8, [&](size_t begin, size_t end) {
    ctx.kernels.silu_mul(gate.rows(begin, end), up.rows(begin, end), gate.rows(begin, end));
  });
}

void softmax(const KernelTable& kernels, std::span<const float> scores, std::span<float> probabilities) {
  float max = 0;
  double sum = 0;
  kernels.max_and_exp_sum(scores.data(), scores.size(), 1.0f, max, sum);
  kernels.exp_shifted(scores.data(), scores.size(), max, 1.0f, probabilities.data());
  for (float& p : probabilities) p = static_cast<float>(p / sum);
}

void add(ExecContext& ctx, MatView<const float> contribution, MatView<float> stream) {
  for_row_slices(ctx, contribution, 1,
                 [&](size_t begin, size_t end) { ctx.kernels.add(contribution.rows(begin, end), stream.rows(begin, end)); });
}

}  // namespace kilin

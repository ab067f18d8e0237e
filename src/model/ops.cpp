#include "model/ops.h"

#include <algorithm>

namespace kilin {

namespace {

constexpr size_t kSliceWork = 16384;  // scalar operations: a few microseconds, as much as waking a thread
constexpr size_t kTileRows = 64;      // rows of x a tile of a matrix product: they stay in L2 while weights stream past

template <typename F>
void for_row_slices(ExecContext& ctx, MatView<const float> x, size_t work_per_element, F f) {
  ctx.pool.parallel_for(x.rows(), grain(x.cols() * work_per_element), [&](const Slice& s) { f(s.begin, s.end); });
}

}  // namespace

size_t grain(size_t work) { return std::max<size_t>(1, kSliceWork / std::max<size_t>(1, work)); }

void matmul(ExecContext& ctx, const PackedMatrix& w, MatView<const float> x, MatView<float> y) {
  if (x.rows() == 0) return;
  const size_t row_tiles = (x.rows() + kTileRows - 1) / kTileRows;
  const size_t rows_per_tile = std::min(x.rows(), kTileRows);
  // Columns a tile: enough work for a slice, few enough that every thread gets some, and whole groups of 16.
  const size_t columns_for_work = kSliceWork / (w.cols() * rows_per_tile) + 1;
  const size_t columns = std::clamp<size_t>((columns_for_work + 15) / 16 * 16, 16, 256);
  const size_t column_tiles = (w.rows() + columns - 1) / columns;
  ctx.pool.parallel_for(row_tiles * column_tiles, 1, [&](const Slice& s) {
    for (size_t tile = s.begin; tile < s.end; ++tile) {  // neighbours share their weights
      const size_t row = tile % row_tiles * kTileRows, column = tile / row_tiles * columns;
      const size_t row_end = std::min(row + kTileRows, x.rows());
      ctx.kernels.matmul(w, x.rows(row, row_end), column, std::min(column + columns, w.rows()), y.rows(row, row_end));
    }
  });
}

void gather_rows(ExecContext& ctx, const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) {
  for_row_slices(ctx, out, 1, [&](size_t begin, size_t end) {
    ctx.kernels.gather_rows(table, ids.subspan(begin, end - begin), out.rows(begin, end));
  });
}

void rms_norm(ExecContext& ctx, MatView<const float> x, const float* weight, float eps, MatView<float> out) {
  for_row_slices(ctx, x, 2, [&](size_t begin, size_t end) {
    ctx.kernels.rms_norm(x.rows(begin, end), weight, eps, out.rows(begin, end));
  });
}

void gated_rms_norm(ExecContext& ctx, MatView<float> x, const float* weight, MatView<const float> gate, size_t head_dim,
                    float eps) {
  for_row_slices(ctx, x, 8, [&](size_t begin, size_t end) {
    ctx.kernels.gated_rms_norm(x.rows(begin, end), weight, gate.rows(begin, end), head_dim, eps);
  });
}

void l2_norm(ExecContext& ctx, MatView<float> x, size_t head_dim, float scale) {
  for_row_slices(ctx, x, 2, [&](size_t begin, size_t end) { ctx.kernels.l2_norm(x.rows(begin, end), head_dim, scale); });
}

void silu_mul(ExecContext& ctx, MatView<float> gate, MatView<const float> up) {
  for_row_slices(ctx, gate, 8, [&](size_t begin, size_t end) {
    ctx.kernels.silu_mul(gate.rows(begin, end), up.rows(begin, end), gate.rows(begin, end));
  });
}

void sigmoid(ExecContext& ctx, MatView<float> x) {
  for_row_slices(ctx, x, 8, [&](size_t begin, size_t end) { ctx.kernels.sigmoid(x.rows(begin, end), x.rows(begin, end)); });
}

void add(ExecContext& ctx, MatView<const float> contribution, MatView<float> stream) {
  for_row_slices(ctx, contribution, 1,
                 [&](size_t begin, size_t end) { ctx.kernels.add(contribution.rows(begin, end), stream.rows(begin, end)); });
}

}  // namespace kilin

// The kernels as layers call them: shares the work of one op among the threads. The result does not depend on how.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <variant>

#include "model/exec_context.h"

namespace kilin {

/// Rows that a product reads: fp32; or bf16 if the weight is of bf16, by row; or int8 if it has panels.
using ProductRows = std::variant<MatView<const float>, MatView<const bf16>, Int8Rows>;

/// y = x W^T: x [T, in], W [out, in], y [T, out].
struct Product {
  const PackedMatrix& w;
  ProductRows x;
  MatView<float> y;
};

inline constexpr size_t kMostProducts = 8;

/// At most kMostProducts in one loop, so that threads wait for each other once instead of once a product. None may read what
/// another one writes.
void matmul(ExecContext& ctx, std::initializer_list<Product> products);

/// The same for rows [from, to) of x and columns [begin, end) of y, on this thread.
void matmul_tile(const KernelTable& kernels, const Product& product, size_t from, size_t to, size_t begin, size_t end);

/// Operations of a product with such rows, by the kind of arithmetic that they take.
StageCost cost_of_operations(const ProductRows& x, uint64_t operations);

/// out = x as bf16.
void round_to_bf16(ExecContext& ctx, MatView<const float> x, MatView<bf16> out);

/// out = x as int8.
void quantize_rows(ExecContext& ctx, MatView<const float> x, const Int8Rows& out);

/// Memory for rows as bf16. Between two rows lies an odd number of cache lines: at the widths
/// of models, mostly powers of two, the rows of a tile would all want the same few lines of the first-level cache.
MatView<bf16> take_bf16_rows(Workspace::Frame& frame, size_t rows, size_t cols);

/// Memory for rows as int8.
Int8Rows take_int8_rows(Workspace::Frame& frame, size_t rows, size_t cols);

/// out[t] = table[ids[t]] as fp32.
void gather_rows(ExecContext& ctx, const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out);

/// By row: out = x * rsqrt(mean(x^2) + eps) * weight. In place if x is out.
void rms_norm(ExecContext& ctx, MatView<const float> x, const float* weight, float eps, MatView<float> out);

/// gate = silu(gate) * up.
void silu_mul(ExecContext& ctx, MatView<float> gate, MatView<const float> up);

/// Probabilities of a row of scores, on this thread; of -inf it is 0. In place if they are the same.
void softmax(const KernelTable& kernels, std::span<const float> scores, std::span<float> probabilities);

/// stream += contribution.
void add(ExecContext& ctx, MatView<const float> contribution, MatView<float> stream);

/// Columns that a tile of a matrix product should hold. Enough to be worth a slice, and more where a thread has many: long
/// streams are read faster, but the last tile must not keep the other threads waiting. A multiple of 64, the widest register
/// tile of the kernels. No byte depends on it.
/// @param work_per_column in scalar operations. @param columns_a_thread that the loop has
size_t tile_columns(size_t work_per_column, size_t columns_a_thread);

/// Indices a slice should hold so that waking a thread pays: each costs about `work` scalar operations.
size_t grain(size_t work);

}  // namespace kilin

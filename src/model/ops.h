// The kernels as the layers call them: the work of one op, shared among the threads. What is here decides who computes what and
// never changes a byte of it.
#pragma once

#include <cstdint>
#include <span>

#include "model/exec_context.h"

namespace kilin {

/// y = x W^T: x [T, in], W [out, in], y [T, out].
void matmul(ExecContext& ctx, const PackedMatrix& w, MatView<const float> x, MatView<float> y);

/// out[t] = table[ids[t]] as fp32.
void gather_rows(ExecContext& ctx, const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out);

/// By row: out = x * rsqrt(mean(x^2) + eps) * weight. In place if x is out.
void rms_norm(ExecContext& ctx, MatView<const float> x, const float* weight, float eps, MatView<float> out);

/// By row and head: norm first, then weight, then sigmoid(gate). In place.
void gated_rms_norm(ExecContext& ctx, MatView<float> x, const float* weight, MatView<const float> gate, size_t head_dim,
                    float eps);

/// By row and head: x * rsqrt(sum(x^2) + 1e-6) * scale. In place.
void l2_norm(ExecContext& ctx, MatView<float> x, size_t head_dim, float scale);

/// gate = silu(gate) * up.
void silu_mul(ExecContext& ctx, MatView<float> gate, MatView<const float> up);

/// x = sigmoid(x).
void sigmoid(ExecContext& ctx, MatView<float> x);

/// stream += contribution.
void add(ExecContext& ctx, MatView<const float> contribution, MatView<float> stream);

/// Indices a slice should hold so that waking a thread pays: each costs about `work` scalar operations.
size_t grain(size_t work);

}  // namespace kilin

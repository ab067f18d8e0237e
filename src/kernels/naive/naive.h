// The naive kernels: scalar, obvious, fp32. They are the oracle in tests, and run where no fast form is allowed. The contracts
// are those of kernels/kernel_table.h, kda.h and mla.h; libm is allowed here and nowhere else.
#pragma once

#include "kernels/kernel_table.h"

namespace kilin::naive {

void matmul(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) noexcept;
void quantize_rows(MatView<const float> x, const Int8Rows& out) noexcept;
void matmul_int8(const PackedMatrix& w, const Int8Rows& x, size_t begin, size_t end, MatView<float> y) noexcept;
void matmul_bf16(const PackedMatrix& w, MatView<const bf16> x, size_t begin, size_t end, MatView<float> y) noexcept;
void matmul_transposed(const PackedMatrix& w, MatView<const float> x, MatView<float> y) noexcept;
void gather_rows(const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) noexcept;

void round_to_bf16(MatView<const float> x, MatView<bf16> out) noexcept;
void add(MatView<const float> x, MatView<float> out) noexcept;
void add_scaled(const float* x, float scale, size_t n, float* out) noexcept;
void silu_mul(MatView<const float> gate, MatView<const float> up, MatView<float> out) noexcept;
void sigmoid(MatView<const float> x, MatView<float> out) noexcept;

void rms_norm(MatView<const float> x, const float* weight, float eps, MatView<float> out) noexcept;
void gated_rms_norm(MatView<float> x, const float* weight, MatView<const float> gate, size_t head_dim, float eps) noexcept;
void l2_norm(MatView<float> x, size_t head_dim, float scale) noexcept;

void causal_conv_silu(MatView<const float> x, MatView<const float> weight, MatView<float> tail, MatView<float> out) noexcept;
void kda_gate(MatView<const float> f, const float* A_log, const float* dt_bias, size_t head_dim, MatView<float> g) noexcept;
void chunk_kda(const KdaHead& head, std::span<float> scratch) noexcept;
void fused_recurrent_kda(const KdaHead& head, std::span<float> scratch) noexcept;

void route(MatView<const float> logits, const float* bias, const RouteParams& params, MatView<int32_t> ids,
           MatView<float> weights) noexcept;

void mla_extend_block(const MlaExtendBlock& block, std::span<float> scratch) noexcept;
void mla_decode_block(const MlaDecodeBlock& block, std::span<float> scratch) noexcept;
void mla_decode_block_bf16(const MlaDecodeBlock& block, std::span<float> scratch) noexcept;
void softmax_merge(const SoftmaxPartial& from, const SoftmaxPartial& into, size_t n) noexcept;
void softmax_finish(const SoftmaxPartial& partial, size_t n) noexcept;
void max_and_exp_sum(const float* x, size_t n, float scale, float& max, double& sum) noexcept;
void exp_shifted(const float* x, size_t n, float max, float scale, float* p) noexcept;

}  // namespace kilin::naive

// The interface of all kernels: plain function pointers, one table per instruction set, picked once at start. Callers do not
// know which form runs.
//
// A kernel works on one thread, on the rows, heads or tiles that it is given; callers share the work among threads. It does not
// allocate, does not throw (its type says so), and gives every output the same bytes whatever else the same call computes:
// - one output's reduction is one chain whose order depends on the shape alone, never on the number of rows;
//   - vector tails are masked into the same chain;
//   - exp, log and sigmoid are Kilin's own (generic/math.inl), never libm's.
//
// A new op is a member here, a line in kernel_ops.h, a naive form with its line in naive/table.cpp, and a generic form with its
// line in generic/table.inl: forgetting one does not compile. A new instruction set is a name in Isa, a generic/vec_*.inl and
// its dot products (dot_*.inl), an isa_*.cpp and its lines in isa.cpp. A set that improves only some ops copies the table of
// the set below it and replaces those (isa_avx512_bf16.cpp).
//
// All matrices are fp32 and row-major unless said otherwise. "In place" means that in and out may be the same matrix.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cpu_info.h"
#include "core/dtype.h"
#include "core/mat_view.h"
#include "kernels/int8_rows.h"
#include "kernels/kda.h"
#include "kernels/mla.h"
#include "kernels/packed_matrix.h"

namespace kilin {

/// Instruction sets that have a table of their own, weakest first.
enum class Isa : uint8_t { Scalar, Avx2, Avx2Vnni, Avx512, Avx512Vnni, Avx512Bf16 };
inline constexpr std::array kIsas = {Isa::Scalar, Isa::Avx2, Isa::Avx2Vnni, Isa::Avx512, Isa::Avx512Vnni, Isa::Avx512Bf16};

/// "scalar", "avx2", "avx2+vnni", "avx512", "avx512+vnni", "avx512+bf16" (VNNI too): the names that KILIN_ISA takes
std::string_view to_string(Isa isa);

/// Limits of `route` and `causal_conv_silu`, which keep a row of experts, or a channel's weights, on the stack.
inline constexpr size_t kMaxExperts = 4096;
inline constexpr size_t kMaxConvWidth = 16;

/// Where a router sends one row; see `route`.
struct RouteParams {
  size_t top_k;
  size_t groups;      ///< num_expert_group; 1 = no grouping
  size_t top_groups;  ///< topk_group
  bool renormalize;   ///< moe_renormalize
  float scale;        ///< routed_scaling_factor
};

struct KernelTable {
  Isa isa = Isa::Scalar;

  /// y[m, n] = sum_k x[m, k] w[n, k] for all rows m of x and n in [begin, end). One chain over k per output, fused where the
  /// set has fma. x [M, K]; w [N, K] of a DType, or blocks in panels, whose weights are those of dequantize_row, k ascending; y
  /// [M, N] (its stride may be larger: a slice of a wider matrix). x and y do not overlap.
  void (*matmul)(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) noexcept;

  /// x as int8 by groups of 256 columns, the last of a row perhaps shorter: scale = largest magnitude / 127; value = x * (127 /
  /// largest magnitude), rounded to nearest, ties to even. Every form gives the same bytes. A group with an infinity or a NaN
  /// gets the scale NaN, so that every product with it is NaN; a group below kInt8LeastMagnitude gets the scale 0. The values
  /// of both are 0. x [T, K]; out has as many rows and columns.
  void (*quantize_rows)(MatView<const float> x, const Int8Rows& out) noexcept;

  /// Like matmul, with x replaced by what quantize_rows wrote; w in panels. One chain per output, over groups G of 256 columns
  /// ascending:
  ///   f = 0
  ///   for every weight group s of G, ascending:   f = fma(d * scales[s], float(sum over s of code_value * value), f)
  ///   for every weight block b of G, if offsets:  f = fma(dmin, float(sum over groups s of b: offsets[s] * sum(values)), f)
  ///   y = fma(activation scale of G, f, y)
  /// from y = 0. The inner sums are exact integers. Every form whose fma rounds once (all but scalar) gives the same bytes.
  void (*matmul_int8)(const PackedMatrix& w, const Int8Rows& x, size_t begin, size_t end, MatView<float> y) noexcept;

  /// Like matmul, with x replaced by what round_to_bf16 wrote; w [N, K] of bf16, by row. An output has W lanes, where W is the
  /// set's width in floats (naive: 1), each a chain over its pairs of columns k, k + 1 for k = 2 lane, 2 (lane + W), ...:
  ///   f = fma(x[k], w[k], fma(x[k + 1], w[k + 1], f))   from f = 0; columns beyond K count as 0
  /// then the sum over the lanes. vdpbf16ps does the same, so that the three sets with AVX-512 give the same bytes as long as
  /// nothing is subnormal: it always reads and writes subnormals as 0. Products of bf16 are exact in fp32: beside the error of
  /// round_to_bf16, at most 2^-8 of |x| |w|, there is no more error than in matmul.
  void (*matmul_bf16)(const PackedMatrix& w, MatView<const bf16> x, size_t begin, size_t end, MatView<float> y) noexcept;

  /// y[m, k] = sum_n x[m, n] w[n, k], n ascending: the product with w itself where matmul takes its transpose (absorbed MLA).
  /// x [M, N]; w [N, K] of a DType; y [M, K].
  void (*matmul_transposed)(const PackedMatrix& w, MatView<const float> x, MatView<float> y) noexcept;

  /// out[i] = row ids[i] of the table as fp32. The table stores elements or blocks by row. @pre every id < table.rows()
  void (*gather_rows)(const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) noexcept;

  /// out = x rounded to the nearest bfloat16, ties to even; a NaN stays NaN. Every form gives the same bytes.
  void (*round_to_bf16)(MatView<const float> x, MatView<bf16> out) noexcept;

  /// out += x.
  void (*add)(MatView<const float> x, MatView<float> out) noexcept;

  /// out += scale * x over n values; sums the experts.
  void (*add_scaled)(const float* x, float scale, size_t n, float* out) noexcept;

  /// out = x * rsqrt(mean(x^2) + eps) * weight, by row. weight [cols] fp32. In place.
  void (*rms_norm)(MatView<const float> x, const float* weight, float eps, MatView<float> out) noexcept;

  /// By row and head of `head_dim` columns: x = x * rsqrt(mean(x^2) + eps) * weight * sigmoid(gate): norm first, then weight,
  /// then the sigmoid of the gate. x, gate [T, heads x head_dim]; weight [head_dim]. In place.
  void (*gated_rms_norm)(MatView<float> x, const float* weight, MatView<const float> gate, size_t head_dim, float eps) noexcept;

  /// By row and head: x = x * rsqrt(sum(x^2) + 1e-6) * scale. x [T, heads x head_dim]. In place.
  void (*l2_norm)(MatView<float> x, size_t head_dim, float scale) noexcept;

  /// out = silu(gate) * up. out may be gate or up.
  void (*silu_mul)(MatView<const float> gate, MatView<const float> up, MatView<float> out) noexcept;

  /// Causal depthwise convolution of one sequence, then SiLU: out[t, c] = silu(sum_j w[j, c] x[t - (W - 1) + j, c]), j
  /// ascending; w[W - 1, c] multiplies the current token. Rows before the first are the W - 1 rows of `tail`, oldest first, or
  /// zeros. Afterwards `tail` holds the last W - 1 rows of (tail, x). x [T, C] raw projections; weight [W, C]; tail [W - 1, C];
  /// out [T, C], not x. With T = 0 the tail keeps its bytes. @pre 1 <= W <= kMaxConvWidth
  void (*causal_conv_silu)(MatView<const float> x, MatView<const float> weight, MatView<float> tail,
                           MatView<float> out) noexcept;

  /// Log decay of a KDA layer: g[t, h K + i] = -exp(A_log[h]) * softplus(f[t, h K + i] + dt_bias[h K + i]) <= 0;
  /// softplus(y) = log(1 + e^y), y itself above 20. f, g [T, heads x K]; A_log [heads]; dt_bias [heads x K]. In place.
  void (*kda_gate)(MatView<const float> f, const float* A_log, const float* dt_bias, size_t head_dim,
                   MatView<float> g) noexcept;

  /// out = sigmoid(x). In place.
  void (*sigmoid)(MatView<const float> x, MatView<float> out) noexcept;

  /// Routing of every row: scores s = sigmoid(logits); selection by s + bias (ties to the lower id) among the best `top_groups`
  /// groups (a group's score is the sum of its two best), all else -inf; weights are the *unbiased* s of the chosen, divided by
  /// (their sum + 1e-20) if renormalize, times scale. Chosen ids ascend. logits [T, E]; bias [E]; ids, weights [T, top_k].
  /// @pre top_k <= E <= kMaxExperts; groups divides E. A NaN among the logits still gives distinct ids below E.
  void (*route)(MatView<const float> logits, const float* bias, const RouteParams& params, MatView<int32_t> ids,
                MatView<float> weights) noexcept;

  /// The gated delta rule over one head of one sequence; see kernels/kda.h.
  void (*chunk_kda)(const KdaHead& head, std::span<float> scratch) noexcept;
  void (*fused_recurrent_kda)(const KdaHead& head, std::span<float> scratch) noexcept;

  /// Attention over latents; see kernels/mla.h.
  void (*mla_extend_block)(const MlaExtendBlock& block, std::span<float> scratch) noexcept;
  void (*mla_decode_block)(const MlaDecodeBlock& block, std::span<float> scratch) noexcept;
  void (*mla_decode_block_bf16)(const MlaDecodeBlock& block, std::span<float> scratch) noexcept;
  void (*softmax_merge)(const SoftmaxPartial& from, const SoftmaxPartial& into, size_t n) noexcept;
  void (*softmax_finish)(const SoftmaxPartial& partial, size_t n) noexcept;

  /// The logits' largest value and sum_i exp((x[i] - max) * scale), for sampling. @pre n > 0
  void (*max_and_exp_sum)(const float* x, size_t n, float scale, float& max, double& sum) noexcept;
  /// p[i] = exp((x[i] - max) * scale). In place.
  void (*exp_shifted)(const float* x, size_t n, float max, float scale, float* p) noexcept;
};

/// The kernels that somebody asked for by name: KILIN_ISA and KILIN_NAIVE, or the same two strings from elsewhere.
struct KernelChoice {
  std::string isa;    ///< one of the names of Isa, or empty for the best that the CPU has
  std::string naive;  ///< ops to run in their naive form, separated by commas; "all" for every op
  static KernelChoice from_environment();
};

/// The table for this CPU. @throws InvalidArgument for an unknown name, listing the known ones; Unsupported for an instruction
/// set that the CPU lacks.
KernelTable select_kernels(const CpuInfo& cpu, const KernelChoice& choice);

/// The scalar, obvious form of every op, which tests compare the others with.
const KernelTable& naive_kernels();

/// Op names in the table's order with the form that `table` holds ("avx512", "naive", ...), for `kilin info`.
struct KernelForm {
  std::string_view op;
  std::string_view form;
};
std::vector<KernelForm> describe(const KernelTable& table);

}  // namespace kilin

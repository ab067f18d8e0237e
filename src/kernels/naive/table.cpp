// Every op in its naive form. Forgetting an op here does not compile (-Wmissing-field-initializers).
#include "kernels/naive/naive.h"

namespace kilin {

const KernelTable& naive_kernels() {
  static constexpr KernelTable table = {
      .isa = Isa::Scalar,
      .matmul = naive::matmul,
      .quantize_rows = naive::quantize_rows,
      .matmul_int8 = naive::matmul_int8,
      .matmul_bf16 = naive::matmul_bf16,
      .matmul_transposed = naive::matmul_transposed,
      .gather_rows = naive::gather_rows,
      .round_to_bf16 = naive::round_to_bf16,
      .add = naive::add,
      .add_scaled = naive::add_scaled,
      .rms_norm = naive::rms_norm,
      .gated_rms_norm = naive::gated_rms_norm,
      .l2_norm = naive::l2_norm,
      .silu_mul = naive::silu_mul,
      .causal_conv_silu = naive::causal_conv_silu,
      .kda_gate = naive::kda_gate,
      .sigmoid = naive::sigmoid,
      .route = naive::route,
      .chunk_kda = naive::chunk_kda,
      .fused_recurrent_kda = naive::fused_recurrent_kda,
      .mla_extend_block = naive::mla_extend_block,
      .mla_decode_block = naive::mla_decode_block,
      .mla_decode_block_bf16 = naive::mla_decode_block_bf16,
      .softmax_merge = naive::softmax_merge,
      .softmax_finish = naive::softmax_finish,
      .max_and_exp_sum = naive::max_and_exp_sum,
      .exp_shifted = naive::exp_shifted,
  };
  return table;
}

}  // namespace kilin

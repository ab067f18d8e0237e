// The list of ops by name, as KILIN_NAIVE takes them and `kilin info` prints them. A test and the assertion below keep it
// complete.
#pragma once

#include <string_view>
#include <tuple>

#include "kernels/kernel_table.h"

namespace kilin {

template <typename Function>
struct KernelOp {
  constexpr KernelOp(std::string_view op, Function KernelTable::*pointer) : name(op), member(pointer) {}
  std::string_view name;
  Function KernelTable::*member;
};

inline constexpr std::tuple kKernelOps = {
    KernelOp{"matmul", &KernelTable::matmul},
    KernelOp{"quantize_rows", &KernelTable::quantize_rows},
    KernelOp{"matmul_int8", &KernelTable::matmul_int8},
    KernelOp{"matmul_bf16", &KernelTable::matmul_bf16},
    KernelOp{"matmul_transposed", &KernelTable::matmul_transposed},
    KernelOp{"gather_rows", &KernelTable::gather_rows},
    KernelOp{"round_to_bf16", &KernelTable::round_to_bf16},
    KernelOp{"add", &KernelTable::add},
    KernelOp{"add_scaled", &KernelTable::add_scaled},
    KernelOp{"rms_norm", &KernelTable::rms_norm},
    KernelOp{"gated_rms_norm", &KernelTable::gated_rms_norm},
    KernelOp{"l2_norm", &KernelTable::l2_norm},
    KernelOp{"silu_mul", &KernelTable::silu_mul},
    KernelOp{"causal_conv_silu", &KernelTable::causal_conv_silu},
    KernelOp{"kda_gate", &KernelTable::kda_gate},
    KernelOp{"sigmoid", &KernelTable::sigmoid},
    KernelOp{"route", &KernelTable::route},
    KernelOp{"chunk_kda", &KernelTable::chunk_kda},
    KernelOp{"fused_recurrent_kda", &KernelTable::fused_recurrent_kda},
    KernelOp{"mla_extend_block", &KernelTable::mla_extend_block},
    KernelOp{"mla_decode_block", &KernelTable::mla_decode_block},
    KernelOp{"mla_decode_block_bf16", &KernelTable::mla_decode_block_bf16},
    KernelOp{"softmax_merge", &KernelTable::softmax_merge},
    KernelOp{"softmax_finish", &KernelTable::softmax_finish},
    KernelOp{"max_and_exp_sum", &KernelTable::max_and_exp_sum},
    KernelOp{"exp_shifted", &KernelTable::exp_shifted},
};

inline constexpr size_t kKernelOpCount = std::tuple_size_v<decltype(kKernelOps)>;
static_assert(sizeof(KernelTable) == (kKernelOpCount + 1) * sizeof(void (*)()),
              "an op of KernelTable is missing in kKernelOps");

/// Calls f(op) for every op, in the table's order.
template <typename F>
void for_each_kernel_op(F&& f) {
  std::apply([&](const auto&... op) { (f(op), ...); }, kKernelOps);
}

}  // namespace kilin

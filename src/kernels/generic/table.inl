// The table of one instruction set, outside of its target region. Forgetting an op here does not compile.
const KernelTable kKernels = {
    .isa = kIsa,
    .matmul = matmul,
    .quantize_rows = quantize_rows,
    .matmul_int8 = matmul_int8,
    .matmul_bf16 = matmul_bf16,
    .matmul_transposed = matmul_transposed,
    .gather_rows = gather_rows,
    .round_to_bf16 = round_to_bf16,
    .add = add,
    .add_scaled = add_scaled,
    .rms_norm = rms_norm,
    .gated_rms_norm = gated_rms_norm,
    .l2_norm = l2_norm,
    .silu_mul = silu_mul,
    .causal_conv_silu = causal_conv_silu,
    .kda_gate = kda_gate,
    .sigmoid = sigmoid,
    .route = route,
    .chunk_kda = chunk_kda,
    .fused_recurrent_kda = fused_recurrent_kda,
    .mla_extend_block = mla_extend_block,
    .mla_decode_block = mla_decode_block,
    .mla_decode_block_bf16 = mla_decode_block,  // without a bf16 instruction, fp32 is as fast
    .softmax_merge = softmax_merge,
    .softmax_finish = softmax_finish,
    .max_and_exp_sum = max_and_exp_sum,
    .exp_shifted = exp_shifted,
};

const MathTable kMath = {.exp = exp, .softplus = softplus, .sigmoid = sigmoid};

const PeakTable kPeaks = {
    .int8_dot = {.operations_per_round = kPeakChains * kWidth * 8, .run = run_int8_dots},
    .fp32_fma = {.operations_per_round = kPeakChains * kWidth * 2, .run = run_fp32_fmas},
    .read = read_streams,
};

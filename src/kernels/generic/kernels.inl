// All kernels, in terms of the vectors of the vec_*.inl before it. Included once by each isa_*.cpp, inside its namespace and
// target region. Each file uses words of those above it.

// clang-format off
#include "kernels/generic/math.inl"
#include "kernels/generic/vector_steps.inl"
#include "kernels/generic/elementwise.inl"
#include "kernels/generic/norm.inl"
#include "kernels/generic/conv.inl"
#include "kernels/generic/route.inl"
#include "kernels/generic/register_tile.inl"
#include "kernels/generic/prefetch.inl"
#include "kernels/generic/dot_products.inl"
#include "kernels/generic/panels.inl"
#include "kernels/generic/panel_matmul.inl"
#include "kernels/generic/matmul.inl"
#include "kernels/generic/bf16_pair_products.inl"
#include "kernels/generic/matmul_bf16.inl"
#include "kernels/generic/quantize_rows.inl"
#include "kernels/generic/matmul_int8.inl"
#include "kernels/generic/chunk_kda.inl"
#include "kernels/generic/recurrent_kda.inl"
#include "kernels/generic/mla.inl"
#include "kernels/generic/mla_decode.inl"
#include "kernels/generic/softmax.inl"
#include "kernels/generic/peaks.inl"
// clang-format on

// All kernels, written with the vectors of the vec_*.inl that is included before. Each isa_*.cpp includes it once, inside its
// namespace and target region. Each file below uses the ones above it.

// clang-format off
#include "kernels/generic/math.inl"
#include "kernels/generic/vector_steps.inl"
#include "kernels/generic/elementwise.inl"
#include "kernels/generic/norm.inl"
#include "kernels/generic/conv.inl"
#include "kernels/generic/route.inl"
#include "kernels/generic/register_tiles.inl"
#include "kernels/generic/prefetch.inl"
#include "kernels/generic/dot_products.inl"
#include "kernels/generic/panels.inl"
#include "kernels/generic/panel_matmul.inl"
#include "kernels/generic/matmul.inl"
#include "kernels/generic/bf16_dot.inl"
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

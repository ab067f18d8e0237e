// A case for every op of the kernel table: random shapes, strides and values, each instruction set against the naive form. A
// fuzzer and a test draw them. An op of kKernelOps without a case does not compile.
#pragma once

#include <array>
#include <utility>

#include "kernels/kernel_ops.h"
#include "support/kernel_choices.h"

namespace kilin::testing {

/// Draws inputs of one op and compares. @throws KernelDiffers
template <auto op>
void kernel_case(Choices& choices) = delete;

}  // namespace kilin::testing

#include "support/kernel_cases_attention.h"
#include "support/kernel_cases_elementwise.h"
#include "support/kernel_cases_products.h"

namespace kilin::testing {

using KernelCase = void (*)(Choices&);

/// In the order of kKernelOps.
inline constexpr auto kKernelCases = []<size_t... op>(std::index_sequence<op...>) {
  return std::array<KernelCase, sizeof...(op)>{&kernel_case<std::get<op>(kKernelOps).member>...};
}
(std::make_index_sequence<kKernelOpCount>());

}  // namespace kilin::testing

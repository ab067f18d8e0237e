// The values of a stored tensor as fp32, whatever its format.
#pragma once

#include <cstddef>

#include "checkpoint/tensor_store.h"

namespace kilin {

/// Whether values_as_f32 reads it: f32, f16, bf16 and blocks.
bool has_float_values(StorageFormat format);

/// @throws Unsupported naming the tensor unless has_float_values
void require_float_values(const StoredTensor& tensor);

/// Elements [begin, begin + count), counted along the rows. @pre has_float_values(tensor.format); whole blocks
void values_as_f32(const StoredTensor& tensor, size_t begin, size_t count, float* out);

}  // namespace kilin

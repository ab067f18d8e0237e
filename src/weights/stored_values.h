// A stored tensor's values as fp32, whatever it is stored as.
#pragma once

#include <cstddef>

#include "checkpoint/tensor_store.h"

namespace kilin {

/// Elements [begin, end), counted along the rows. @pre the format is f32, f16, bf16 or of blocks, and then begin and end are
/// multiples of a block's elements
void read_values(const StoredTensor& tensor, size_t begin, size_t end, float* out);

/// True for what read_values reads.
bool has_float_values(StorageFormat format);

}  // namespace kilin

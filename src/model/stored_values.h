// A stored tensor's values as fp32, whatever it is stored as.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "checkpoint/tensor_store.h"

namespace kilin {

/// Elements [begin, end), counted along the rows. @pre the format is f32, f16, bf16 or of blocks, and then begin and end are
/// multiples of a block's elements
void read_values(const StoredTensor& tensor, size_t begin, size_t end, float* out);

/// True for what read_values reads.
bool has_float_values(StorageFormat format);

/// Before values of a tensor are rounded to another format: holds them to what that can hold, of a block what its scales can.
/// @param row the tensor's row that the values are, if they are one: for the message
/// @throws Corrupt, naming the first value that is no number or too large, and its place
void require_representable(const StoredTensor& tensor, std::optional<size_t> row, std::span<const float> values,
                           StorageFormat format);

}  // namespace kilin

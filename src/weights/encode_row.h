// One row of a tensor on its way from the format that it is stored in to another.
#pragma once

#include <cstddef>
#include <span>

#include "checkpoint/tensor_store.h"
#include "kernels/quant/quantize.h"

namespace kilin {

/// Writes `values`, row `row` of `from`, in another format. Safe to call from any thread.
/// @param out to.bytes_of(values.size()) bytes. @throws Corrupt for a value that the format can't hold (no number, or too
/// large), naming the tensor and its place. @pre `to` is f32, f16, bf16 or can_quantize; the row is of whole blocks
void encode_row(const StoredTensor& from, size_t row, std::span<const float> values, StorageFormat to, Rounding rounding,
                std::byte* out);

}  // namespace kilin

// Quantises fp32 rows to the block formats that Kilin writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/storage_format.h"

namespace kilin {

/// Searched tries several scales (and minima) per block and takes the one with the least squared error, which is never more
/// than that of Nearest. Nearest takes the scale from the largest magnitude, the plain rule, and is kept for comparison.
enum class Rounding : uint8_t { Searched, Nearest };

/// Whether quantize_row writes this format: q4_0, q8_0, q4_k, q5_k, q6_k.
bool can_quantize(BlockFormat format);

/// Quantises n elements to whole blocks. Deterministic, on every compiler; a block depends on its own elements alone. The
/// blocks' fp16 numbers are always finite. Elements beyond the format's largest scale become the largest value that it holds;
/// the caller must refuse infinities and NaN. Safe to call from any thread. @pre can_quantize(format); n is a multiple of the
/// block's elements
void quantize_row(BlockFormat format, Rounding rounding, const float* x, size_t n, std::byte* blocks);

}  // namespace kilin

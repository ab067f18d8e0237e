// fp32 rows to blocks: the formats that Kilin writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/storage_format.h"

namespace kilin {

/// Searched takes, of several scales (and minima) a block, the one with the least squared error, which is never more than that
/// of Nearest; Nearest takes the largest magnitude's, as the plain rule has it, and stands for comparison.
enum class Rounding : uint8_t { Searched, Nearest };

/// Whether quantize_row writes this format: q4_0, q8_0, q4_k, q5_k, q6_k.
bool can_quantize(BlockFormat format);

/// n elements to whole blocks. Deterministic, on every compiler; a block depends on its own elements alone. The blocks' halves
/// are always finite. Elements that no scale of the format reaches become the largest that one does; infinities and NaN are the
/// caller's to refuse. Safe to call from any thread. @pre can_quantize(format); n is a multiple of the block's elements
void quantize_row(BlockFormat format, Rounding rounding, const float* x, size_t n, std::byte* blocks);

}  // namespace kilin

#include "kernels/quant/blocks.h"

namespace kilin {

namespace {

constexpr std::array<BlockTraits, kBlockFormats.size()> kTraits = {{
    {.elements = 32, .group = 32, .bits = 4, .bias = 8, .codebook = false, .has_offsets = false},    // q4_0
    {.elements = 32, .group = 32, .bits = 4, .bias = 0, .codebook = false, .has_offsets = true},     // q4_1
    {.elements = 32, .group = 32, .bits = 5, .bias = 16, .codebook = false, .has_offsets = false},   // q5_0
    {.elements = 32, .group = 32, .bits = 5, .bias = 0, .codebook = false, .has_offsets = true},     // q5_1
    {.elements = 32, .group = 32, .bits = 8, .bias = 128, .codebook = false, .has_offsets = false},  // q8_0
    {.elements = 256, .group = 16, .bits = 2, .bias = 0, .codebook = false, .has_offsets = true},    // q2_k
    {.elements = 256, .group = 16, .bits = 3, .bias = 4, .codebook = false, .has_offsets = false},   // q3_k
    {.elements = 256, .group = 32, .bits = 4, .bias = 0, .codebook = false, .has_offsets = true},    // q4_k
    {.elements = 256, .group = 32, .bits = 5, .bias = 0, .codebook = false, .has_offsets = true},    // q5_k
    {.elements = 256, .group = 16, .bits = 6, .bias = 32, .codebook = false, .has_offsets = false},  // q6_k
    {.elements = 32, .group = 32, .bits = 4, .bias = 0, .codebook = true, .has_offsets = false},     // iq4_nl
    {.elements = 256, .group = 32, .bits = 4, .bias = 0, .codebook = true, .has_offsets = false},    // iq4_xs
    {.elements = 32, .group = 32, .bits = 4, .bias = 0, .codebook = true, .has_offsets = false},     // mxfp4
}};

}  // namespace

const BlockTraits& block_traits(BlockFormat format) { return kTraits[static_cast<size_t>(format)]; }

}  // namespace kilin

#include "kernels/quant/quantize.h"

#include <array>
#include <cassert>

#include "kernels/quant/quantize_rules.h"

namespace kilin {

namespace {

using Elements = std::array<float, kMostBlockElements>;

Elements limited(const float* x, size_t n) {
  Elements out{};
  for (size_t i = 0; i < n; ++i) {
    const float low = x[i] > -quant::kLargestElement ? x[i] : -quant::kLargestElement;  // a NaN too
    out[i] = low < quant::kLargestElement ? low : quant::kLargestElement;
  }
  return out;
}

double squared_error(BlockFormat format, const BlockParts& parts, const Elements& x) {
  const BlockTraits& traits = block_traits(format);
  double total = 0;
  for (size_t i = 0; i < traits.elements; ++i) {
    const size_t group = i / traits.group;
    const auto value = static_cast<float>(parts.codes[i] - traits.bias);
    const double left = double{parts.scale(group) * value + parts.offset(group)} - double{x[i]};
    total += left * left;
  }
  return total;
}

}  // namespace

bool can_quantize(BlockFormat format) {
  return format == BlockFormat::q4_0 || format == BlockFormat::q8_0 || format == BlockFormat::q4_k ||
         format == BlockFormat::q5_k || format == BlockFormat::q6_k;
}

void quantize_row(BlockFormat format, Rounding rounding, const float* x, size_t n, std::byte* blocks) {
  assert(can_quantize(format));
  const size_t elements = block_traits(format).elements;
  const size_t bytes = block_size(format).bytes;
  assert(n % elements == 0);
  const quant::Grid grid = quant::grid_of(format);
  for (size_t begin = 0; begin < n; begin += elements, blocks += bytes) {
    const Elements block = limited(x + begin, elements);
    BlockParts parts;
    quant::nearest_block(grid, block.data(), parts);
    if (rounding == Rounding::Searched) {
      BlockParts searched;
      quant::searched_block(grid, block.data(), searched);
      if (squared_error(format, searched, block) < squared_error(format, parts, block)) parts = searched;
    }
    put_together(format, parts, blocks);
  }
}

}  // namespace kilin

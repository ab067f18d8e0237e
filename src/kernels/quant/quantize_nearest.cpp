// The plain rules, for comparison and as a starting point that the search must beat.
#include <array>

#include "kernels/quant/quantize_rules.h"

namespace kilin::quant {

namespace {

// The 16 or 32 levels run from -high - 1: the element of largest magnitude takes the lowest, whatever its sign.
float symmetric_scale(Levels levels, const float* x, size_t n) {
  const float most = peak(x, n);
  return levels.low < -levels.high ? most / levels.low : std::fabs(most) / levels.high;
}

// Sets d, then the scales of signed groups: the largest becomes -most - 1.
void scale_signed_groups(const Grid& grid, const float* x, BlockParts& parts) {
  const BlockTraits& traits = block_traits(grid.format);
  const size_t groups = traits.elements / traits.group;
  std::array<float, 16> scales{};
  for (size_t g = 0; g < groups; ++g) scales[g] = symmetric_scale(grid.levels, x + g * traits.group, traits.group);
  const int least = -grid.most_scale - 1;
  parts.d = finite_half(peak(scales.data(), groups) / static_cast<float>(least));
  for (size_t g = 0; g < groups; ++g)
    parts.scales[g] = static_cast<int8_t>(whole(scales[g] * inverse(parts.d), least, grid.most_scale));
}

// Sets d, dmin, and the scales and minima of affine groups.
void scale_affine_groups(const Grid& grid, const float* x, BlockParts& parts) {
  const BlockTraits& traits = block_traits(grid.format);
  const size_t groups = traits.elements / traits.group;
  std::array<float, 16> scales{};
  std::array<float, 16> minima{};
  for (size_t g = 0; g < groups; ++g) {
    const Span span = span_of(x + g * traits.group, traits.group);
    scales[g] = (span.high - span.low) / grid.levels.high;
    minima[g] = -span.low;
  }
  const auto most = static_cast<float>(grid.most_scale);
  parts.d = finite_half(peak(scales.data(), groups) / most);
  parts.dmin = finite_half(peak(minima.data(), groups) / most);
  for (size_t g = 0; g < groups; ++g) {
    parts.scales[g] = static_cast<int8_t>(whole(scales[g] * inverse(parts.d), 0, grid.most_scale));
    parts.offsets[g] = static_cast<int8_t>(-whole(minima[g] * inverse(parts.dmin), 0, grid.most_scale));
  }
}

}  // namespace

void choose_block_codes(const Grid& grid, const float* x, BlockParts& parts) {
  const BlockTraits& traits = block_traits(grid.format);
  for (size_t g = 0; g < traits.elements / traits.group; ++g) {
    const size_t first = g * traits.group;
    choose_codes(x + first, traits.group, grid.levels, group_affine(parts, g), traits.bias, parts.codes.data() + first);
  }
}

void nearest_block(const Grid& grid, const float* x, BlockParts& parts) {
  if (block_traits(grid.format).has_offsets) {
    scale_affine_groups(grid, x, parts);
  } else if (grid.most_scale > 1) {
    scale_signed_groups(grid, x, parts);
  } else {
    parts.d = finite_half(symmetric_scale(grid.levels, x, block_traits(grid.format).elements));
    parts.scales[0] = 1;
  }
  choose_block_codes(grid, x, parts);
}

}  // namespace kilin::quant

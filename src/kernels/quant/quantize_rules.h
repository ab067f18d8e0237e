// How a block's scales and codes are chosen. quantize.cpp calls quantize_nearest.cpp or quantize_search.cpp, after it has
// limited the elements: |x| <= kLargestElement, and no NaN.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>

#include "core/dtype.h"
#include "kernels/quant/blocks.h"
#include "kernels/quant/group_fit.h"

namespace kilin::quant {

/// More than any format holds (q6_k: 65504 * 128 * 32), and small enough that squares still sum in fp32.
inline constexpr float kLargestElement = 0x1p28f;

/// The range of a format's codes and scales, and where a search looks for a group's scale.
struct Grid {
  BlockFormat format;
  Levels levels;        ///< of code_value in the symmetric formats, of the code in the affine ones
  int most_scale;       ///< largest scale of a group; 1 where groups have none of their own
  float first_stretch;  ///< the search tries the plain rule's scale divided by first_stretch + i * step, i < steps
  float step;
  int steps;
};

/// @pre can_quantize(format)
inline Grid grid_of(BlockFormat format) {
  // Wider ranges and closer steps reduce the error by less than half a per cent, for Gaussian elements and for a trained
  // model's.
  switch (format) {
    case BlockFormat::q4_0:
      return {format, {-8, 7}, 1, 0.8f, 0.05f, 11};
    case BlockFormat::q8_0:
      return {format, {-127, 127}, 1, 0.9f, 0.005f, 22};  // never -128: kernels elsewhere negate codes within a byte
    case BlockFormat::q6_k:
      return {format, {-32, 31}, 127, 0.87f, 0.02f, 14};
    case BlockFormat::q5_k:
      return {format, {0, 31}, 63, 0.96f, 0.02f, 11};
    case BlockFormat::q4_k:
      return {format, {0, 15}, 63, 0.92f, 0.04f, 11};
    default:
      assert(false && "can_quantize(format)");
      return {};
  }
}

/// The finite fp16 number nearest to x.
inline float finite_half(float x) { return to_float(to_f16(std::clamp(x, -65504.0f, 65504.0f))); }

/// x[i] of the largest magnitude, with its sign.
inline float peak(const float* x, size_t n) {
  float most = 0;
  for (size_t i = 0; i < n; ++i)
    if (std::fabs(x[i]) > std::fabs(most)) most = x[i];
  return most;
}

/// From the least element, or 0, to the largest: what an affine group spans. Offsets are never positive.
struct Span {
  float low;
  float high;
};
inline Span span_of(const float* x, size_t n) {
  const auto [low, high] = std::minmax_element(x, x + n);
  return {std::min(*low, 0.0f), *high};
}

/// v as a whole number from low to high.
inline int whole(float v, int low, int high) {
  return static_cast<int>(std::nearbyint(std::clamp(v, static_cast<float>(low), static_cast<float>(high))));
}

inline Affine group_affine(const BlockParts& parts, size_t group) { return {parts.scale(group), parts.offset(group)}; }

/// Sets the codes nearest for the scales and offsets that `parts` has.
void choose_block_codes(const Grid& grid, const float* x, BlockParts& parts);

/// Takes the scales from the largest magnitudes, without a search.
void nearest_block(const Grid& grid, const float* x, BlockParts& parts);

/// Takes the scales with the least squared error found.
void searched_block(const Grid& grid, const float* x, BlockParts& parts);

}  // namespace kilin::quant

// The error that a scale and an offset cause in the group of elements that share them: the passes that a search of scales
// consists of. In vectors of four, since these passes take nearly all of a quantiser's time. Sums have a fixed order, so that
// every compiler gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kilin::quant {

/// Values of codes: whole numbers from low to high.
struct Levels {
  float low;
  float high;
};

/// An element is scale * q + offset.
struct Affine {
  float scale = 0;
  float offset = 0;
};

/// n elements (a multiple of 4), with the sums that do not depend on the scale and offset.
struct Group {
  const float* x;
  size_t n;
  float sum_x, sum_xx;

  float count() const { return static_cast<float>(n); }
};

/// Sums over a group whose codes are the nearest for some scale and offset.
struct Moments {
  float q, qq, xq;
};

using Vec = float __attribute__((vector_size(16)));

inline Vec splat(float x) { return Vec{x, x, x, x}; }
inline Vec load(const float* from) {
  Vec v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline float sum(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }

/// 1 / scale, or 0 for a scale too small for fp16: then every code is the one nearest 0.
inline float inverse(float scale) { return scale > 0x1p-30f || scale < -0x1p-30f ? 1 / scale : 0; }

/// The whole number of `levels` nearest to v, ties to even.
inline Vec nearest_level(Vec v, Levels levels) {
  const Vec low = splat(levels.low);
  const Vec high = splat(levels.high);
  v = v < low ? low : v;
  v = v > high ? high : v;
  const Vec whole = splat(0x1.8p23f);  // beyond it fp32 has no fractions
  return (v + whole) - whole;
}

inline Group make_group(const float* x, size_t n) {
  Vec sum_x{}, sum_xx{};
  for (size_t i = 0; i < n; i += 4) {
    sum_x += load(x + i);
    sum_xx += load(x + i) * load(x + i);
  }
  return {x, n, sum(sum_x), sum(sum_xx)};
}

inline Moments moments(const Group& group, Levels levels, Affine at) {
  const Vec inverse_scale = splat(inverse(at.scale));
  const Vec offset = splat(at.offset);
  Vec sum_q{}, sum_qq{}, sum_xq{};
  for (size_t i = 0; i < group.n; i += 4) {
    const Vec x = load(group.x + i);
    const Vec q = nearest_level((x - offset) * inverse_scale, levels);
    sum_q += q;
    sum_qq += q * q;
    sum_xq += q * x;
  }
  return {sum(sum_q), sum(sum_qq), sum(sum_xq)};
}

/// The squared error that the nearest codes leave.
inline float error(const Group& group, Levels levels, Affine at) {
  const Vec scale = splat(at.scale);
  const Vec inverse_scale = splat(inverse(at.scale));
  const Vec offset = splat(at.offset);
  Vec total{};
  for (size_t i = 0; i < group.n; i += 4) {
    const Vec x = load(group.x + i) - offset;
    const Vec left = x - scale * nearest_level(x * inverse_scale, levels);
    total += left * left;
  }
  return sum(total);
}

/// The nearest codes themselves: `codes[i] = q + bias`.
inline void choose_codes(const float* x, size_t n, Levels levels, Affine at, int bias, uint8_t* codes) {
  const Vec inverse_scale = splat(inverse(at.scale));
  for (size_t i = 0; i < n; i += 4) {
    const Vec q = nearest_level((load(x + i) - splat(at.offset)) * inverse_scale, levels);
    for (size_t lane = 0; lane < 4; ++lane) codes[i + lane] = static_cast<uint8_t>(static_cast<int>(q[lane]) + bias);
  }
}

}  // namespace kilin::quant

// Looking through a row of logits for the few that matter, at the speed of reading it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace kilin {

/// The first index from `begin` on whose value `wanted` holds for, or the row's size. Values are looked at 32 at a time,
/// without a branch between them, so that a compiler makes vector instructions of it.
template <typename Wanted>
size_t next_where(std::span<const float> row, size_t begin, Wanted&& wanted) {
  constexpr size_t kAtATime = 32;
  if (begin < row.size() && wanted(row[begin])) return begin;
  for (; begin + kAtATime <= row.size(); begin += kAtATime) {
    const float* x = row.data() + begin;
    int32_t any = 0;
    for (size_t i = 0; i < kAtATime; ++i) any |= wanted(x[i]) ? 1 : 0;
    if (any != 0) break;
  }
  while (begin < row.size() && !wanted(row[begin])) ++begin;
  return begin;
}

/// The first index from `begin` on whose value is above `bound`, or is a NaN.
inline size_t next_above(std::span<const float> row, size_t begin, float bound) {
  return next_where(row, begin, [bound](float x) { return !(x <= bound); });
}

/// The largest logit's id, the lowest of equals; nothing if a logit is NaN or all are -inf.
inline std::optional<int32_t> argmax(std::span<const float> logits) {
  float most = -std::numeric_limits<float>::infinity();
  std::optional<int32_t> best;
  for (size_t i = 0; (i = next_above(logits, i, most)) < logits.size(); ++i) {
    if (std::isnan(logits[i])) return std::nullopt;
    most = logits[i];
    best = static_cast<int32_t>(i);
  }
  return best;
}

}  // namespace kilin

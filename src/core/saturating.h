// Sizes worked out of numbers that a file or a caller gave. Where the true number does not fit, the result is the largest one:
// no memory is as large, so whoever asks for it is refused.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kilin {

constexpr size_t saturating_sum(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

/// A factor of 0 makes 0, whatever the others are.
template <typename... Sizes>
constexpr size_t saturating_product(size_t a, size_t b, Sizes... more) {
  const size_t product = b != 0 && a > SIZE_MAX / b ? SIZE_MAX : a * b;
  if constexpr (sizeof...(more) == 0) {
    return product;
  } else {
    return saturating_product(product, more...);
  }
}

}  // namespace kilin

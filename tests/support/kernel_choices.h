// What cases of kernels share that draw their own shapes, strides and values, and how they compare a form with the naive one.
#pragma once

#include <fmt/core.h>
#include <algorithm>

#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/kernels.h"

namespace kilin::testing {

/// Decisions that somebody else takes: a fuzzer from its input, a test from a seed.
class Choices {
 public:
  virtual ~Choices() = default;
  /// In [low, high].
  virtual size_t integer(size_t low, size_t high) = 0;
  bool chance() { return integer(0, 1) == 1; }

  template <typename T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[integer(0, all.size() - 1)];
  }

  /// Finite values up to `most`: uniform, of all magnitudes, mostly zeros, or subnormal, and a few that are chosen one by one.
  std::vector<float> values(size_t n, float most) {
    Random random(integer(0, 255));
    const size_t kind = integer(0, 3);
    std::vector<float> all = random.vector(n, -most, most);
    for (float& v : all) {
      if (kind == 1) v *= std::exp2(random(-40, 0));
      if (kind == 2 && random() > -0.7f) v = 0;
      if (kind == 3 && random() > 0.5f) v *= 0x1p-126f;
    }
    for (size_t few = n > 0 ? integer(0, 3) : 0; few > 0; --few)
      all[integer(0, n - 1)] = one_of({0.0f, -0.0f, most, -most, 1e-42f, -1e-38f, 1.0f});
    return all;
  }

  Matrix matrix(size_t rows, size_t cols, float most = 1) {
    Matrix m(rows, cols, integer(0, 20));
    const std::vector<float> all = values(rows * cols, most);
    for (size_t i = 0; i < all.size(); ++i) m.at(i / cols, i % cols) = all[i];
    return m;
  }
  /// Values between `low` and `high`.
  std::vector<float> between(size_t n, float low, float high) { return Random(integer(0, 255)).vector(n, low, high); }
};

/// What differs from the naive form.
struct KernelDiffers : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect_near(std::span<const float> ours, std::span<const float> naive, auto&& allowed, const std::string& what) {
  for (size_t i = 0; i < naive.size(); ++i) {
    const double difference = std::fabs(double{ours[i]} - double{naive[i]});
    if (ours[i] != naive[i] && !(difference <= allowed(i)))
      throw KernelDiffers(fmt::format("{}: element {} of {} is {}; naive {}, allowed {}", what, i, naive.size(), ours[i],
                                      naive[i], allowed(i)));
  }
}

template <typename A, typename B>
void expect_bytes(const A& ours, const B& naive, const std::string& what) {
  const auto a = std::as_bytes(std::span(ours)), b = std::as_bytes(std::span(naive));
  if (!std::ranges::equal(a, b)) throw KernelDiffers(what + ": other bytes than expected");
}

inline void expect_gaps(const Matrix& m, const std::string& what) {
  if (!m.gaps_are_intact()) throw KernelDiffers(what + ": wrote between or behind the rows");
}

inline constexpr double kEps = 0x1p-24;

}  // namespace kilin::testing

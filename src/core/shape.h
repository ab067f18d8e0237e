// The extents of a tensor: at most four, kept inline.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace kilin {

class Shape {
 public:
  static constexpr size_t kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<size_t> extents) : Shape(std::span<const size_t>(extents.begin(), extents.size())) {}

  /// @pre extents.size() <= kMaxRank
  explicit Shape(std::span<const size_t> extents) : rank_(extents.size()) {
    assert(extents.size() <= kMaxRank);
    for (size_t i = 0; i < rank_; ++i) extents_[i] = extents[i];
  }

  size_t rank() const { return rank_; }
  size_t operator[](size_t axis) const { return extents_[axis]; }
  const size_t* begin() const { return extents_.data(); }
  const size_t* end() const { return extents_.data() + rank_; }

  /// Product of the extents; 1 for rank 0. Readers of files check for overflow before they build a Shape.
  size_t elements() const {
    size_t n = 1;
    for (size_t extent : *this) n *= extent;
    return n;
  }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<size_t, kMaxRank> extents_{};  // beyond rank_: zeros, so that == may compare all
  size_t rank_ = 0;
};

/// "[4096, 1, 4]"
std::string to_string(const Shape& shape);

}  // namespace kilin

#include "core/tensor.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace kilin {

namespace {
constexpr size_t kAlignment = 64;
}

bool TensorView::is_contiguous() const {
  size_t stride = 1;
  for (size_t axis = shape_.rank(); axis-- > 0; stride *= shape_[axis])
    if (shape_[axis] > 1 && strides_[axis] != stride) return false;
  return true;
}

TensorView TensorView::rows(size_t begin, size_t end) const {
  assert(begin <= end && end <= shape_[0]);
  std::array<size_t, Shape::kMaxRank> extents{};
  std::copy(shape_.begin(), shape_.end(), extents.begin());
  extents[0] = end - begin;
  return {static_cast<std::byte*>(data_) + begin * strides_[0] * size_of(dtype_), dtype_,
          Shape(std::span<const size_t>(extents.data(), shape_.rank())), strides_};
}

Tensor::Tensor(DType dtype, const Shape& shape) : shape_(shape), dtype_(dtype) {
  size_t bytes = size_of(dtype);
  bool fits = true;
  if (std::find(shape.begin(), shape.end(), size_t{0}) != shape.end()) bytes = 0;
  for (size_t extent : shape) fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (fits && bytes <= SIZE_MAX - kAlignment) {
    const size_t rounded = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
    if (data_) std::memset(data_.get(), 0, rounded);
  }
  if (!data_) raise(ErrorCode::ResourceExhausted, "no memory for a tensor {} of {}", to_string(shape), to_string(dtype));
}

void copy_elements(const TensorView& from, const TensorView& to) {
  assert(from.shape() == to.shape() && from.dtype() == to.dtype());
  if (from.shape().elements() == 0) return;
  // As four axes, the missing ones in front with one element each; the innermost is copied in one go where neither has gaps.
  std::array<size_t, Shape::kMaxRank> extents = {1, 1, 1, 1}, source{}, target{};
  const size_t missing = Shape::kMaxRank - from.shape().rank();
  for (size_t axis = missing; axis < Shape::kMaxRank; ++axis) {
    extents[axis] = from.shape()[axis - missing];
    source[axis] = from.stride(axis - missing);
    target[axis] = to.stride(axis - missing);
  }
  const size_t element = size_of(from.dtype()), run = source[3] == 1 && target[3] == 1 ? extents[3] : 1;
  const auto offset = [&](const auto& strides, size_t i, size_t j, size_t k, size_t l) {
    return (i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3]) * element;
  };
  for (size_t i = 0; i < extents[0]; ++i)
    for (size_t j = 0; j < extents[1]; ++j)
      for (size_t k = 0; k < extents[2]; ++k)
        for (size_t l = 0; l < extents[3]; l += run)
          std::memcpy(static_cast<std::byte*>(to.data()) + offset(target, i, j, k, l),
                      static_cast<const std::byte*>(from.data()) + offset(source, i, j, k, l), run * element);
}

Tensor copy_of(const TensorView& view) {
  Tensor copy(view.dtype(), view.shape());
  copy_elements(view, copy.view());
  return copy;
}

}  // namespace kilin

#include "core/tensor.h"

#include <algorithm>
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

}  // namespace kilin

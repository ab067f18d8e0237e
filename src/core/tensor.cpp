#include "core/tensor.h"

#include <cstring>

#include "core/error.h"

namespace kilin {

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t axis = 0; axis < shape.rank(); ++axis) text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

bool TensorView::is_contiguous() const {
  size_t stride = 1;
  for (size_t axis = shape_.rank(); axis-- > 0; stride *= shape_[axis])
    if (shape_[axis] > 1 && strides_[axis] != stride) return false;
  return true;
}

Tensor::Tensor(DType dtype, const Shape& shape) : shape_(shape), dtype_(dtype) {
  const size_t rounded = (bytes() + 63) / 64 * 64;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, rounded == 0 ? 64 : rounded)));
  if (!data_)
    raise(ErrorCode::ResourceExhausted, "no memory for a tensor {} of {}: {} bytes", to_string(shape), to_string(dtype),
          bytes());
  std::memset(data_.get(), 0, rounded);
}

}  // namespace kilin

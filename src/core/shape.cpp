#include "core/shape.h"

namespace kilin {

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t axis = 0; axis < shape.rank(); ++axis) text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

}  // namespace kilin

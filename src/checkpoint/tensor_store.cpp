#include "checkpoint/tensor_store.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "core/error.h"

namespace kilin {

StoredTensor StoredTensor::rows(size_t begin, size_t end, std::string new_name) const {
  assert(shape.rank() >= 1 && begin <= end && end <= shape[0]);
  const size_t bytes_per_row = shape[0] == 0 ? 0 : bytes.size() / shape[0];
  std::array<size_t, Shape::kMaxRank> extents{};
  std::copy(shape.begin(), shape.end(), extents.begin());
  extents[0] = end - begin;
  return {.name = std::move(new_name),
          .format = format,
          .shape = Shape(std::span<const size_t>(extents.data(), shape.rank())),
          .bytes = bytes.subspan(begin * bytes_per_row, (end - begin) * bytes_per_row),
          .file = file};
}

StoredTensor StoredTensor::reshaped(const Shape& new_shape) const {
  assert(new_shape.elements() == elements());
  StoredTensor other = *this;
  other.shape = new_shape;
  return other;
}

bool TensorStore::contains(std::string_view name) const { return std::binary_search(names().begin(), names().end(), name); }

StoredTensor TensorStore::require(std::string_view name) const {
  if (auto tensor = find(name)) return *std::move(tensor);
  raise(ErrorCode::NotFound, "{}: there is no tensor '{}'", source(), printable(name));
}

}  // namespace kilin

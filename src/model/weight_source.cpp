#include "model/weight_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "model/native_names.h"
#include "model/weight_map.h"

namespace kilin {

namespace {

void require_float(const StoredTensor& tensor) {
  if (tensor.format == DType::f32 || tensor.format == DType::f16 || tensor.format == DType::bf16) return;
  raise(ErrorCode::Unsupported, "{}: tensor '{}' is stored as {}; expected f32, f16 or bf16", tensor.file, tensor.name,
        to_string(tensor.format));
}

// A copy as fp32 of another shape with as many elements.
Tensor as_f32(const StoredTensor& tensor, const Shape& shape) {
  require_float(tensor);
  Tensor copy(DType::f32, shape);
  float* out = copy.as<float>();
  const size_t n = shape.elements();
  const auto convert = [&]<typename T>(T) {
    for (size_t i = 0; i < n; ++i) {
      T value;
      std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = to_float(value);
    }
  };
  switch (tensor.format.dtype()) {
    case DType::f32:
      if (n > 0) std::memcpy(out, tensor.bytes.data(), n * sizeof(float));
      break;
    case DType::f16:
      convert(f16{});
      break;
    case DType::bf16:
      convert(bf16{});
      break;
    default:
      break;
  }
  return copy;
}

[[noreturn]] void raise_shape(const StoredTensor& tensor, const std::string& expected) {
  raise(ErrorCode::Corrupt, "{}: tensor '{}' has shape {}; expected {}", tensor.file, tensor.name, to_string(tensor.shape),
        expected);
}

}  // namespace

WeightSource::WeightSource(std::shared_ptr<const TensorStore> store, std::set<std::string, std::less<>> names)
    : store_(std::move(store)), left_(std::move(names)) {}

WeightSource WeightSource::open(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config) {
  auto store = with_published_names(std::move(checkpoint), config);
  check_tensors(*store, config);
  std::set<std::string, std::less<>> names(store->names().begin(), store->names().end());
  return {std::move(store), std::move(names)};
}

WeightSource WeightSource::open_layer(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config, size_t layer) {
  auto store = with_published_names(std::move(checkpoint), config);
  check_tensors_of_layer(*store, config, layer);
  std::set<std::string, std::less<>> names;
  for (ExpectedTensor& tensor : expected_tensors_of_layer(config, layer)) names.insert(std::move(tensor.name));
  return {std::move(store), std::move(names)};
}

WeightSource WeightSource::unchecked(std::shared_ptr<const TensorStore> store) {
  std::set<std::string, std::less<>> names(store->names().begin(), store->names().end());
  return {std::move(store), std::move(names)};
}

StoredTensor WeightSource::take(std::string_view name) {
  const auto at = left_.find(name);
  if (at == left_.end()) {
    if (store_->contains(name))
      raise(ErrorCode::InvalidArgument, "{}: tensor '{}' was handed out before, or is of a layer that was not opened",
            store_->source(), name);
    raise(ErrorCode::NotFound, "{}: there is no tensor '{}'", store_->source(), name);
  }
  StoredTensor tensor = store_->require(name);
  left_.erase(at);
  return tensor;
}

PackedMatrix WeightSource::matrix(std::string_view name, size_t rows, size_t cols) {
  const StoredTensor tensor = take(name);
  if (tensor.shape != Shape{rows, cols}) raise_shape(tensor, to_string(Shape{rows, cols}));
  require_float(tensor);
  return {tensor.format, rows, cols, tensor.bytes.data()};
}

Tensor WeightSource::vector(std::string_view name, size_t n) {
  const StoredTensor tensor = take(name);
  if (tensor.elements() != n) raise_shape(tensor, fmt::format("{} elements", n));
  return as_f32(tensor, {n});
}

Tensor WeightSource::conv(std::string_view name, size_t channels, size_t width) {
  const StoredTensor tensor = take(name);
  if (tensor.shape != Shape{channels, 1, width}) raise_shape(tensor, to_string(Shape{channels, 1, width}));
  return as_f32(tensor, {channels, width});
}

void WeightSource::finish() const {
  if (left_.empty()) return;
  std::string names;
  for (const std::string& name : left_) {
    if (names.size() > 1000) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + printable(name);
  }
  raise(ErrorCode::Corrupt, "{}: {} tensors were not used by the model: {}", store_->source(), left_.size(), names);
}

}  // namespace kilin

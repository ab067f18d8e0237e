#include "weights/weight_source.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/error.h"
#include "weights/native_names.h"
#include "weights/stored_values.h"
#include "weights/weight_map.h"

namespace kilin {

namespace {

void require_float(const StoredTensor& tensor) {
  if (!has_float_values(tensor.format))
    raise(ErrorCode::Unsupported, "{}: tensor '{}' is stored as {}; expected f32, f16, bf16 or blocks", tensor.file,
          printable(tensor.name), to_string(tensor.format));
}

// A copy as fp32 of another shape with as many elements.
Tensor as_f32(const StoredTensor& tensor, const Shape& shape) {
  require_float(tensor);
  Tensor copy(DType::f32, shape);
  read_values(tensor, 0, shape.elements(), copy.as<float>());
  return copy;
}

std::unique_ptr<WeightPacker> packer_of(PackPlan plan, const PackOptions& packing) {
  return plan.empty() ? nullptr : std::make_unique<WeightPacker>(std::move(plan), packing);
}

[[noreturn]] void raise_shape(const StoredTensor& tensor, const std::string& expected) {
  raise(ErrorCode::Corrupt, "{}: tensor '{}' has shape {}; expected {}", tensor.file, tensor.name, to_string(tensor.shape),
        expected);
}

}  // namespace

WeightSource::WeightSource(std::shared_ptr<const TensorStore> store, Names names, std::unique_ptr<WeightPacker> packer)
    : store_(std::move(store)), left_(std::move(names)), packer_(std::move(packer)) {}

WeightSource WeightSource::open(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config,
                                const PackOptions& packing) {
  auto store = with_published_names(std::move(checkpoint), config);
  check_tensors(*store, config);
  Names names(store->names().begin(), store->names().end());
  auto packer = packer_of(PackPlan::of(*store, config, packing.quantize), packing);
  return {std::move(store), std::move(names), std::move(packer)};
}

WeightSource WeightSource::open_layer(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config, size_t layer,
                                      const PackOptions& packing) {
  auto store = with_published_names(std::move(checkpoint), config);
  check_tensors_of_layer(*store, config, layer);
  Names names;
  for (ExpectedTensor& tensor : expected_tensors_of_layer(config, layer)) names.insert(std::move(tensor.name));
  auto packer = packer_of(PackPlan::of_layer(*store, config, layer, packing.quantize), packing);
  return {std::move(store), std::move(names), std::move(packer)};
}

WeightSource WeightSource::unchecked(std::shared_ptr<const TensorStore> store) {
  Names names(store->names().begin(), store->names().end());
  return {std::move(store), std::move(names), nullptr};
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

StoredTensor WeightSource::take_matrix(std::string_view name, size_t rows, size_t cols) {
  StoredTensor tensor = take(name);
  if (tensor.shape != Shape{rows, cols}) raise_shape(tensor, to_string(Shape{rows, cols}));
  require_float(tensor);
  return tensor;
}

// Products read elements through pointers to them, which must be multiples of the element's size; blocks are read byte by byte.
// Files by the usual writers are aligned, so that few models pay with memory.
const std::byte* WeightSource::elements_of(const StoredTensor& tensor) {
  const std::byte* stored = tensor.bytes.data();
  if (tensor.format.is_block() || reinterpret_cast<uintptr_t>(stored) % size_of(tensor.format.dtype()) == 0) return stored;
  const Tensor& copy = copies_->emplace_back(DType::u8, Shape{tensor.bytes.size()});
  std::ranges::copy(tensor.bytes, copy.data());
  store_->release(tensor.bytes);
  return copy.data();
}

// Rows that products read where the file has them, all of them each time.
PackedMatrix WeightSource::in_place(const PackedMatrix& rows) const {
  store_->ask_for_huge_pages({rows.data(), rows.bytes()});
  return rows;
}

PackedMatrix WeightSource::matrix(std::string_view name, size_t rows, size_t cols) {
  const StoredTensor tensor = take_matrix(name, rows, cols);
  const PlannedPack* pack = packer_ ? packer_->plan().find(name) : nullptr;
  if (pack != nullptr) return packer_->pack(*pack, tensor, *store_);
  if (tensor.format.is_block())
    raise(ErrorCode::Unsupported, "{}: tensor '{}' is {}, and this source packs nothing; expected f32, f16 or bf16",
          tensor.file, printable(tensor.name), to_string(tensor.format));
  return in_place({tensor.format, rows, cols, elements_of(tensor)});
}

PackedMatrix WeightSource::table(std::string_view name, size_t rows, size_t cols) {
  const StoredTensor tensor = take_matrix(name, rows, cols);
  return {tensor.format, rows, cols, elements_of(tensor)};
}

PackedMatrix WeightSource::tied_matrix(std::string_view name, const PackedMatrix& taken) {
  const PlannedPack* pack = packer_ ? packer_->plan().find(name) : nullptr;
  return pack == nullptr ? in_place(taken) : packer_->pack(*pack, store_->require(pack->source), *store_);
}

DenseMatrix WeightSource::dense(std::string_view name, size_t rows, size_t cols) {
  const StoredTensor tensor = take_matrix(name, rows, cols);
  if (!tensor.format.is_block()) return {.view = in_place({tensor.format, rows, cols, elements_of(tensor)})};
  Tensor copy = as_f32(tensor, {rows, cols});
  store_->release(tensor.bytes);
  const PackedMatrix view(DType::f32, rows, cols, copy.data());
  return {.view = view, .owned = std::move(copy)};
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

void WeightSource::finish() {
  if (left_.empty()) {
    if (packer_) packer_->finish();
    return;
  }
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

#include "weights/weight_source.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/error.h"
#include "weights/native_names.h"
#include "weights/stored_values.h"

namespace kilin {

namespace {

std::unique_ptr<WeightPacker> packer_of(PackPlan plan, const PackOptions& packing) {
  return plan.empty() ? nullptr : std::make_unique<WeightPacker>(std::move(plan), packing);
}

constexpr bool is_table(WeightUse use) { return use == WeightUse::Table; }
constexpr bool is_dense(WeightUse use) { return use == WeightUse::Dense; }
constexpr bool is_parameter(WeightUse use) { return use == WeightUse::Parameter; }

// A copy as fp32.
Tensor as_f32(const StoredTensor& tensor) {
  Tensor copy(DType::f32, tensor.shape);
  read_values(tensor, 0, tensor.elements(), copy.as<float>());
  return copy;
}

}  // namespace

WeightSource::WeightSource(std::shared_ptr<const TensorStore> store, std::vector<ExpectedTensor> tensors,
                           std::unique_ptr<WeightPacker> packer)
    : store_(std::move(store)), packer_(std::move(packer)) {
  for (ExpectedTensor& tensor : tensors) {
    std::string name = tensor.name;
    left_.emplace(std::move(name), std::move(tensor));
  }
}

WeightSource WeightSource::open(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config,
                                const PackOptions& packing) {
  auto store = with_published_names(std::move(checkpoint), config);
  check_tensors(*store, config);
  auto packer = packer_of(PackPlan::of(*store, config, packing.quantize), packing);
  return {std::move(store), expected_tensors(config), std::move(packer)};
}

WeightSource WeightSource::open_layer(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config, size_t layer,
                                      const PackOptions& packing) {
  auto store = with_published_names(std::move(checkpoint), config);
  check_tensors_of_layer(*store, config, layer);
  auto packer = packer_of(PackPlan::of_layer(*store, config, layer, packing.quantize), packing);
  return {std::move(store), expected_tensors_of_layer(config, layer), std::move(packer)};
}

WeightSource WeightSource::of_tensors(std::shared_ptr<const TensorStore> store, std::vector<ExpectedTensor> tensors) {
  return {std::move(store), std::move(tensors), nullptr};
}

// The one way to a tensor's bytes. Where ranks share a model, a rank's part is cut out here, by the row's shard rule.
StoredTensor WeightSource::take(std::string_view name, bool (*is_read_so)(WeightUse)) {
  const auto at = left_.find(name);
  if (at == left_.end()) {
    if (store_->contains(name))
      raise(ErrorCode::InvalidArgument, "{}: tensor '{}' was handed out before, or is of a layer that was not opened",
            store_->source(), name);
    raise(ErrorCode::NotFound, "{}: there is no tensor '{}'", store_->source(), name);
  }
  const ExpectedTensor& expected = at->second;
  if (!is_read_so(expected.pattern->use))
    raise(ErrorCode::InvalidArgument, "tensor '{}' is asked for in another form than {} is read in", name,
          expected.pattern->field);
  StoredTensor tensor = store_->require(name);
  if (const std::string fault = fault_of(tensor, expected); !fault.empty())
    raise(ErrorCode::Corrupt, "{}: tensor '{}' {}", tensor.file, printable(name), fault);
  tensor = tensor.reshaped(expected.shape);
  left_.erase(at);
  return tensor;
}

// Products read elements through pointers to them, which must be multiples of the element's size; blocks are read byte by byte.
// Files by the usual writers are aligned, so that few models pay with memory.
PackedMatrix WeightSource::rows_of(const StoredTensor& tensor) {
  const std::byte* elements = tensor.bytes.data();
  if (!tensor.format.is_block() && reinterpret_cast<uintptr_t>(elements) % size_of(tensor.format.dtype()) != 0) {
    const Tensor& copy = copies_->emplace_back(DType::u8, Shape{tensor.bytes.size()});
    std::ranges::copy(tensor.bytes, copy.data());
    store_->release(tensor.bytes);
    elements = copy.data();
  }
  return {tensor.format, tensor.shape[0], tensor.shape[1], elements};
}

// Rows that products read in the mapped file: the whole matrix, every time.
PackedMatrix WeightSource::in_place(const PackedMatrix& rows) const {
  store_->ask_for_huge_pages({rows.data(), rows.bytes()});
  return rows;
}

PackedMatrix WeightSource::matrix(std::string_view name) {
  const StoredTensor tensor = take(name, is_product);
  const PlannedPack* pack = packer_ ? packer_->plan().find(name) : nullptr;
  if (pack != nullptr) return packer_->pack(*pack, tensor, *store_);
  if (tensor.format.is_block())
    raise(ErrorCode::Unsupported, "{}: tensor '{}' is {}, and this source packs nothing; expected f32, f16 or bf16",
          tensor.file, printable(tensor.name), to_string(tensor.format));
  return in_place(rows_of(tensor));
}

PackedMatrix WeightSource::table(std::string_view name) { return rows_of(take(name, is_table)); }

PackedMatrix WeightSource::tied_matrix(std::string_view name, const PackedMatrix& taken) {
  const PlannedPack* pack = packer_ ? packer_->plan().find(name) : nullptr;
  return pack == nullptr ? in_place(taken) : packer_->pack(*pack, store_->require(pack->source), *store_);
}

DenseMatrix WeightSource::dense(std::string_view name) {
  const StoredTensor tensor = take(name, is_dense);
  if (!tensor.format.is_block()) return {.view = in_place(rows_of(tensor))};
  Tensor copy = as_f32(tensor);
  store_->release(tensor.bytes);
  const PackedMatrix view(DType::f32, tensor.shape[0], tensor.shape[1], copy.data());
  return {.view = view, .owned = std::move(copy)};
}

Tensor WeightSource::parameter(std::string_view name) { return as_f32(take(name, is_parameter)); }

void WeightSource::finish() {
  if (left_.empty()) {
    if (packer_) packer_->finish();
    return;
  }
  std::string names;
  for (const auto& [name, tensor] : left_) {
    if (names.size() > 1000) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + printable(name);
  }
  raise(ErrorCode::Corrupt, "{}: {} tensors were not used by the model: {}", store_->source(), left_.size(), names);
}

}  // namespace kilin

#include "weights/tensor_inventory.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "weights/native_names.h"

namespace kilin {

namespace {

InventoryTensor look_at(const TensorStore* store, const ExpectedTensor& expected, std::set<std::string>& messages) {
  InventoryTensor tensor{
      expected.name, expected.pattern, Presence::Expected, expected.published_dtype(), expected.shape, "", ""};
  if (store == nullptr) return tensor;
  try {
    const auto stored = store->find(expected.name);
    tensor.presence = stored ? Presence::Stored : Presence::Missing;
    if (!stored) return tensor;
    tensor.format = stored->format;
    tensor.shape = stored->shape;
    tensor.file = stored->file;
    tensor.fault = fault_of(*stored, expected);
  } catch (const Error& error) {
    tensor.presence = Presence::Unreadable;
    messages.insert(error.what());
  }
  return tensor;
}

// `prefix`: of the names that count.
TensorInventory look_at_all(const TensorStore* store, const std::vector<ExpectedTensor>& expected, std::string_view prefix) {
  TensorInventory inventory;
  std::set<std::string> messages;
  std::set<std::string_view> names;
  for (const ExpectedTensor& tensor : expected) {
    inventory.tensors.push_back(look_at(store, tensor, messages));
    names.insert(tensor.name);
  }
  if (store != nullptr)
    for (const std::string& name : store->names())
      if (name.starts_with(prefix) && !names.contains(name)) inventory.surplus.push_back(name);
  inventory.unreadable_files.assign(messages.begin(), messages.end());
  return inventory;
}

}  // namespace

std::string_view to_string(Presence presence) {
  switch (presence) {
    case Presence::Stored:
      return "stored";
    case Presence::Expected:
      return "expected";
    case Presence::Missing:
      return "missing";
    case Presence::Unreadable:
      return "unreadable";
  }
  return "?";
}

size_t TensorInventory::count(Presence presence) const {
  return static_cast<size_t>(std::ranges::count(tensors, presence, &InventoryTensor::presence));
}

uint64_t TensorInventory::parameters() const {
  uint64_t sum = 0;
  for (const InventoryTensor& tensor : tensors) sum += tensor.parameters();
  return sum;
}

uint64_t TensorInventory::bytes() const {
  uint64_t sum = 0;
  for (const InventoryTensor& tensor : tensors) sum += tensor.bytes();
  return sum;
}

std::shared_ptr<const TensorStore> open_weights_on_demand(const std::filesystem::path& folder, const ModelConfig& config) {
  const auto holds = [&](const char* file) { return std::filesystem::exists(folder / file); };
  if (!holds("model.safetensors") && !holds("model.safetensors.index.json")) return nullptr;
  return with_published_names(Checkpoint::open(folder, Checkpoint::Shards::OnDemand), config);
}

TensorInventory take_inventory(const TensorStore* store, const ModelConfig& config) {
  return look_at_all(store, expected_tensors(config), "");
}

TensorInventory take_inventory_of_layer(const TensorStore* store, const ModelConfig& config, size_t layer) {
  return look_at_all(store, expected_tensors_of_layer(config, layer), fmt::format("model.layers.{}.", layer));
}

}  // namespace kilin

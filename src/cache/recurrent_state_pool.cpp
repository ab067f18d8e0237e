#include "cache/recurrent_state_pool.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/saturating.h"
#include "kernels/kda.h"

namespace kilin {

namespace {

size_t head_floats(const RecurrentStatePool::Dimensions& d) {
  const size_t bound = saturating_product(saturating_sum(d.value_dim, kKdaPanel), d.key_dim);
  return bound == SIZE_MAX ? bound : kda_state_floats(d.key_dim, d.value_dim);
}

size_t layer_floats(const RecurrentStatePool::Dimensions& d) {
  return saturating_sum(saturating_product(d.heads, head_floats(d)), saturating_product(d.conv_rows, d.conv_cols));
}

}  // namespace

StateHandle::StateHandle(StateHandle&& other) noexcept
    : ids_(std::exchange(other.ids_, nullptr)), slot_(std::exchange(other.slot_, 0)) {}

StateHandle& StateHandle::operator=(StateHandle&& other) noexcept {
  std::swap(ids_, other.ids_);
  std::swap(slot_, other.slot_);
  return *this;
}

StateHandle::~StateHandle() {
  if (ids_ != nullptr) ids_->give_back(slot_ - 1);
}

RecurrentStatePool::RecurrentStatePool(const Dimensions& dimensions, size_t slots)
    : dimensions_(dimensions),
      head_floats_(head_floats(dimensions)),
      layer_floats_(layer_floats(dimensions)),
      slot_floats_(saturating_product(dimensions.layers, layer_floats_)),
      ids_(std::make_shared<FreeIds>(slots, "recurrent states")),
      memory_(saturating_product(saturating_sum(slots, 1), slot_floats_, sizeof(float)), "recurrent states"),
      base_(reinterpret_cast<float*>(memory_.data())) {}

size_t RecurrentStatePool::bytes_per_slot(const Dimensions& dimensions) {
  return saturating_product(dimensions.layers, layer_floats(dimensions), sizeof(float));
}

StateHandle RecurrentStatePool::acquire() {
  std::vector<FreeIds::Taken> taken;
  taken.reserve(1);
  if (!ids_->take(1, taken)) raise(ErrorCode::ResourceExhausted, "all {} slots for recurrent states are taken", slots());
  const auto [id, fresh] = taken.front();
  const StateSlot slot = id + 1;
  if (!fresh && slot_floats_ > 0) std::memset(base_ + slot * slot_floats_, 0, bytes_per_slot());
  return {ids_, slot};
}

MatView<float> RecurrentStatePool::conv_tail(StateSlot slot, size_t layer) {
  return {at(slot, layer) + dimensions_.heads * head_floats_, dimensions_.conv_rows, dimensions_.conv_cols};
}

float* RecurrentStatePool::head_state(StateSnapshot& snapshot, size_t layer, size_t head) const {
  return snapshot.values.data() + layer * layer_floats_ + head * head_floats_;
}

MatView<float> RecurrentStatePool::conv_tail(StateSnapshot& snapshot, size_t layer) const {
  return {head_state(snapshot, layer, dimensions_.heads), dimensions_.conv_rows, dimensions_.conv_cols};
}

StateSnapshot RecurrentStatePool::snapshot(StateSlot slot) const {
  const float* from = base_ + slot * slot_floats_;
  return {std::vector<float>(from, from + slot_floats_)};
}

void RecurrentStatePool::restore(StateSlot slot, const StateSnapshot& snapshot) {
  assert(slot != kDummySlot && snapshot.values.size() == slot_floats_);
  if (slot_floats_ > 0) std::memcpy(base_ + slot * slot_floats_, snapshot.values.data(), bytes_per_slot());
}

void RecurrentStatePool::export_state(StateSlot slot, size_t layer, size_t head, MatView<float> out) {
  const float* panels = head_state(slot, layer, head);
  for (size_t k = 0; k < dimensions_.key_dim; ++k)
    for (size_t v = 0; v < dimensions_.value_dim; ++v) out[k][v] = panels[kda_state_index(dimensions_.key_dim, k, v)];
}

void RecurrentStatePool::import_state(StateSlot slot, size_t layer, size_t head, MatView<const float> in) {
  float* panels = head_state(slot, layer, head);
  for (size_t k = 0; k < dimensions_.key_dim; ++k)
    for (size_t v = 0; v < dimensions_.value_dim; ++v) panels[kda_state_index(dimensions_.key_dim, k, v)] = in[k][v];
}

}  // namespace kilin

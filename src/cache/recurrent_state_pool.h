// The states of the KDA layers: per sequence a fixed size, whatever its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/free_ids.h"
#include "core/mat_view.h"
#include "core/reservation.h"

namespace kilin {

class RecurrentStatePool;

using StateSlot = uint32_t;

/// A sequence's slot in the pool. Move-only; gives the slot back when it goes, on any thread, also after the pool has gone.
class StateHandle {
 public:
  StateHandle() = default;
  StateHandle(StateHandle&& other) noexcept;
  StateHandle& operator=(StateHandle&& other) noexcept;
  ~StateHandle();

  bool valid() const { return ids_ != nullptr; }
  StateSlot slot() const { return slot_; }

 private:
  friend class RecurrentStatePool;
  StateHandle(std::shared_ptr<FreeIds> ids, StateSlot slot) : ids_(std::move(ids)), slot_(slot) {}
  std::shared_ptr<FreeIds> ids_;  // the pool's; null without a slot
  StateSlot slot_ = 0;
};

/// A copy of one slot: what a prefix cache keeps, and what a sequence goes back to. The pool itself cannot rewind.
struct StateSnapshot {
  std::vector<float> values;
};

/// Slots of fp32 states S ([heads][V/16][K][16] panels a layer, see kernels/kda.h) and convolution tails (the last W - 1 rows
/// of q | k | v before the convolution, oldest first). Slots are taken and given back on any thread; what is in one belongs to
/// the handle's owner. Slot 0 means "no slot": it is never handed out and stays zero. Spans without tokens may carry it, for
/// they touch no state; ForwardBatch::validate refuses it for a sequence with tokens.
class RecurrentStatePool {
 public:
  struct Dimensions {
    size_t layers;  ///< KDA layers
    size_t heads;
    size_t key_dim;
    size_t value_dim;
    size_t conv_rows;  ///< short_conv_kernel_size - 1
    size_t conv_cols;  ///< channels of q | k | v together
  };
  static constexpr StateSlot kDummySlot = 0;

  /// Costs address space for all slots, and memory for those that are used.
  /// @param slots sequences that may hold a state at once. @throws ResourceExhausted
  RecurrentStatePool(const Dimensions& dimensions, size_t slots);

  /// A zeroed slot. @throws ResourceExhausted when all are taken; bad_alloc, and then none is
  StateHandle acquire();

  const Dimensions& dimensions() const { return dimensions_; }
  size_t slots() const { return ids_->capacity(); }  ///< without the one that means "no slot"
  size_t free_slots() const { return ids_->free(); }
  size_t bytes_per_slot() const { return slot_floats_ * sizeof(float); }
  /// The largest number if the true one does not fit.
  static size_t bytes_per_slot(const Dimensions& dimensions);

  /// All heads' panels of one layer: heads x kda_state_floats(K, V) floats. @param layer counts KDA layers only
  float* state(StateSlot slot, size_t layer) { return at(slot, layer); }
  float* head_state(StateSlot slot, size_t layer, size_t head) { return at(slot, layer) + head * head_floats_; }
  /// [W - 1, conv_cols]
  MatView<float> conv_tail(StateSlot slot, size_t layer);

  /// The same places inside a snapshot.
  float* head_state(StateSnapshot& snapshot, size_t layer, size_t head) const;
  MatView<float> conv_tail(StateSnapshot& snapshot, size_t layer) const;

  /// A snapshot of zeros, to be filled by a kernel on its way.
  StateSnapshot blank_snapshot() const { return {std::vector<float>(slot_floats_)}; }
  StateSnapshot snapshot(StateSlot slot) const;
  void restore(StateSlot slot, const StateSnapshot& snapshot);

  /// One head's state in the order [K, V], as references and other engines have it.
  void export_state(StateSlot slot, size_t layer, size_t head, MatView<float> out);
  void import_state(StateSlot slot, size_t layer, size_t head, MatView<const float> in);

 private:
  float* at(StateSlot slot, size_t layer) { return base_ + slot * slot_floats_ + layer * layer_floats_; }

  Dimensions dimensions_;
  size_t head_floats_;
  size_t layer_floats_;
  size_t slot_floats_;
  std::shared_ptr<FreeIds> ids_;  // of slot - 1; shared with the handles
  Reservation memory_;
  float* base_;
};

}  // namespace kilin

// Turns stored matrices into panels, quantising them first where that was asked for.
#pragma once

#include <functional>
#include <memory>

#include "core/thread_pool.h"
#include "kernels/packed_matrix.h"
#include "weights/pack_plan.h"
#include "weights/pack_store.h"

namespace kilin {

/// How a model's matrices are packed at load.
struct PackOptions {
  std::optional<QuantType> quantize = {};  ///< a model in f32, f16 or bf16 to this; unset: packs what is in blocks, unchanged
  ThreadPool* pool = nullptr;              ///< the threads that pack; null: the one that loads
  /// Makes the store for a plan's packs; unset: in memory. Its exceptions end the load
  std::function<std::unique_ptr<PackStore>(const PackPlan&)> place = {};
  /// Called after each matrix with (bytes packed, bytes in all). Its exceptions end the load
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

/// Not thread-safe. The matrices that it gives out refer to packs().
class WeightPacker {
 public:
  /// @throws as options.place
  WeightPacker(PackPlan plan, const PackOptions& options);

  const PackPlan& plan() const { return plan_; }
  const std::shared_ptr<PackStore>& packs() const { return packs_; }

  /// The panels of `pack`, one of plan()'s, made from `tensor` unless the store held them already. Then drops the tensor's
  /// bytes from memory, so that no weight is there twice.
  /// @throws Corrupt if values to be quantised are no numbers, or too large; as PackStore::write, and options.progress
  PackedMatrix pack(const PlannedPack& pack, const StoredTensor& tensor, const TensorStore& store);

  /// Call when all packs were made, to keep them. @throws as PackStore::commit
  void finish();

 private:
  void fill(const PlannedPack& pack, const StoredTensor& tensor);

  PackPlan plan_;
  PackOptions options_;
  std::shared_ptr<PackStore> packs_;
  uint64_t done_ = 0;  // bytes
};

}  // namespace kilin

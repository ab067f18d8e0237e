// Hands a checkpoint's tensors to the modules that load from it: each exactly once, by name alone. Its row in the weight map
// says what shape it must have and in what form it is read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_store.h"
#include "config/model_config.h"
#include "core/tensor.h"
#include "kernels/packed_matrix.h"
#include "weights/weight_map.h"
#include "weights/weight_packer.h"

namespace kilin {

/// A matrix of plain elements: a view of the stored ones, or of the fp32 copy that it owns.
struct DenseMatrix {
  PackedMatrix view;
  Tensor owned = {};
};

/// Not thread-safe. The functions that hand out a tensor throw NotFound; Corrupt if its shape or dtype is not what the weight
/// map says; InvalidArgument if it was handed out before, or the weight map has another use for it. What they return refers to
/// the bytes of store(), packs() and copies(): keep them as long as the model.
class WeightSource {
 public:
  /// Translates transformers' own names, checks every tensor's name, shape and dtype, and plans what is packed.
  /// @throws as check_tensors, PackPlan::of and packing.place
  static WeightSource open(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config,
                           const PackOptions& packing = {});

  /// The same for the tensors of one layer (from 0); no others are looked at, nor their files opened.
  static WeightSource open_layer(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config, size_t layer,
                                 const PackOptions& packing = {});

  /// A source of these tensors and no others, such as those of one module in a test. It packs nothing, and each tensor is
  /// checked only when it is taken.
  static WeightSource of_tensors(std::shared_ptr<const TensorStore> store, std::vector<ExpectedTensor> tensors);

  /// A weight [out, in] as products read it: a view of stored elements, a copy of them where they do not stand at multiples of
  /// their size, or panels, packed now. @throws also as WeightPacker::pack; Unsupported for blocks where nothing is packed
  PackedMatrix matrix(std::string_view name);

  /// A view of the stored rows, elements or blocks, for gathering: pages of 4 KB serve that best.
  PackedMatrix table(std::string_view name);

  /// A matrix that is tied to one that was taken: panels of its own where it is packed, else the same bytes.
  PackedMatrix tied_matrix(std::string_view name, const PackedMatrix& taken);

  /// The weight as plain elements: blocks become an fp32 copy.
  DenseMatrix dense(std::string_view name);

  /// A vector or convolution as fp32, in the weight map's shape.
  Tensor parameter(std::string_view name);

  /// The model has all that it needs. @throws Corrupt if tensors are left that nobody took, naming them; as
  /// WeightPacker::finish
  void finish();

  const std::shared_ptr<const TensorStore>& store() const { return store_; }

  /// Elements that the file has at odd addresses, where products can't read them.
  std::shared_ptr<const std::vector<Tensor>> copies() const { return copies_; }

  /// What is packed, and where; null if nothing is.
  const PackPlan* plan() const { return packer_ ? &packer_->plan() : nullptr; }
  std::shared_ptr<const PackStore> packs() const { return packer_ ? packer_->packs() : nullptr; }

 private:
  WeightSource(std::shared_ptr<const TensorStore> store, std::vector<ExpectedTensor> tensors,
               std::unique_ptr<WeightPacker> packer);
  StoredTensor take(std::string_view name, bool (*is_read_so)(WeightUse));
  PackedMatrix rows_of(const StoredTensor& tensor);
  PackedMatrix in_place(const PackedMatrix& rows) const;

  std::shared_ptr<const TensorStore> store_;
  std::shared_ptr<std::vector<Tensor>> copies_ = std::make_shared<std::vector<Tensor>>();
  std::map<std::string, ExpectedTensor, std::less<>> left_;  // that nobody took yet
  std::unique_ptr<WeightPacker> packer_;                     // null where nothing is packed
};

}  // namespace kilin

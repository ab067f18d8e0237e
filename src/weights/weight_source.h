// Hands a checkpoint's tensors to the modules that load from it: each exactly once.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_store.h"
#include "config/model_config.h"
#include "core/tensor.h"
#include "kernels/packed_matrix.h"
#include "weights/weight_packer.h"

namespace kilin {

/// A matrix of plain elements: a view of the stored ones, or of the fp32 copy that it owns.
struct DenseMatrix {
  PackedMatrix view;
  Tensor owned = {};
};

/// Not thread-safe. What matrix() and table() return refers to the bytes of store(), packs() and copies(): keep them as long as
/// the model.
class WeightSource {
 public:
  /// Translates transformers' own names, checks every tensor's name, shape and dtype, and plans what is packed.
  /// @throws as check_tensors, PackPlan::of and packing.place
  static WeightSource open(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config,
                           const PackOptions& packing = {});

  /// The same for the tensors of one layer (from 0); no others are looked at, nor their files opened.
  static WeightSource open_layer(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config, size_t layer,
                                 const PackOptions& packing = {});

  /// A source for part of a model, such as one layer in a test: each tensor is still checked when it is taken. It packs
  /// nothing.
  static WeightSource unchecked(std::shared_ptr<const TensorStore> store);

  /// The weight [rows, cols] = [out, in] as products read it: a view of stored elements, a copy of them where they do not stand
  /// at multiples of their size, or panels, packed now.
  /// @throws Corrupt if its shape is another; NotFound; InvalidArgument if it was handed out before; as WeightPacker::pack
  PackedMatrix matrix(std::string_view name, size_t rows, size_t cols);

  /// A view of the stored rows, elements or blocks, for gathering: pages of 4 KB serve that best. @throws as matrix
  PackedMatrix table(std::string_view name, size_t rows, size_t cols);

  /// A matrix that is tied to one that was taken: panels of its own where it is packed, else the same bytes.
  PackedMatrix tied_matrix(std::string_view name, const PackedMatrix& taken);

  /// The weight as plain elements: blocks become an fp32 copy. @throws as matrix
  DenseMatrix dense(std::string_view name, size_t rows, size_t cols);

  /// n values as fp32, whatever the stored shape ([1, 1, 32, 1] among others) and dtype. @throws as matrix
  Tensor vector(std::string_view name, size_t n);

  /// A depthwise convolution's [channels, 1, width] as fp32 [channels, width]. @throws as matrix
  Tensor conv(std::string_view name, size_t channels, size_t width);

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
  using Names = std::set<std::string, std::less<>>;
  WeightSource(std::shared_ptr<const TensorStore> store, Names names, std::unique_ptr<WeightPacker> packer);
  StoredTensor take(std::string_view name);
  StoredTensor take_matrix(std::string_view name, size_t rows, size_t cols);
  const std::byte* elements_of(const StoredTensor& tensor);
  PackedMatrix in_place(const PackedMatrix& rows) const;

  std::shared_ptr<const TensorStore> store_;
  std::shared_ptr<std::vector<Tensor>> copies_ = std::make_shared<std::vector<Tensor>>();
  Names left_;                            // that nobody took yet
  std::unique_ptr<WeightPacker> packer_;  // null where nothing is packed
};

}  // namespace kilin

// Hands a checkpoint's tensors to the modules that load from it: each exactly once.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "checkpoint/tensor_store.h"
#include "core/tensor.h"
#include "kernels/packed_matrix.h"
#include "model/model_config.h"

namespace kilin {

/// Not thread-safe. What matrix() returns refers to the store's bytes: keep store() as long as the model.
class WeightSource {
 public:
  /// Translates transformers' own names and checks every tensor's name, shape and dtype. @throws as check_tensors
  static WeightSource open(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config);

  /// The same for the tensors of one layer (from 0); no others are looked at, nor their files opened.
  static WeightSource open_layer(std::shared_ptr<const TensorStore> checkpoint, const ModelConfig& config, size_t layer);

  /// A source for part of a model, such as one layer in a test: each tensor is still checked when it is taken.
  static WeightSource unchecked(std::shared_ptr<const TensorStore> store);

  /// A view of the stored weight [rows, cols] = [out, in]. @throws Corrupt if its shape is another; NotFound; InvalidArgument
  /// if it was handed out before
  PackedMatrix matrix(std::string_view name, size_t rows, size_t cols);

  /// n values as fp32, whatever the stored shape ([1, 1, 32, 1] among others) and dtype. @throws as matrix
  Tensor vector(std::string_view name, size_t n);

  /// A depthwise convolution's [channels, 1, width] as fp32 [channels, width]. @throws as matrix
  Tensor conv(std::string_view name, size_t channels, size_t width);

  /// @throws Corrupt if tensors are left that nobody took, naming them
  void finish() const;

  const std::shared_ptr<const TensorStore>& store() const { return store_; }

 private:
  WeightSource(std::shared_ptr<const TensorStore> store, std::set<std::string, std::less<>> names);
  StoredTensor take(std::string_view name);

  std::shared_ptr<const TensorStore> store_;
  std::set<std::string, std::less<>> left_;  // names that nobody took yet
};

}  // namespace kilin

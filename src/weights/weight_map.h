// One table says all that there is to say of a tensor of the checkpoint: the module's field that it belongs to, its shape, what
// reads it, and how ranks share it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_store.h"
#include "config/model_config.h"
#include "core/shape.h"
#include "core/storage_format.h"

namespace kilin {

/// How ranks share a tensor, in terms of the transposed [in, out] matrix: Columns cut the outputs (rows of the stored [out,
/// in]), Rows the inputs.
enum class ShardRule : uint8_t {
  Replicated,
  Vocabulary,
  Columns,
  Rows,
  Heads,               ///< per-head or per-channel vectors and convolutions: q, k and v each cut on their own
  ExpertsThenColumns,  ///< whole experts to ranks; inside a group of ranks that share one, as Columns
  ExpertsThenRows,
};

std::string_view to_string(ShardRule rule);

/// An extent of a shape rule: its value, and the words that a message gives for it.
struct Extent {
  size_t (*value)(const ModelConfig&);
  std::string_view words;
};

/// How often a model has a tensor.
enum class OncePer : uint8_t {
  Model,
  UntiedModel,  ///< whose word embeddings are not tied to lm_head
  Layer,
  KdaLayer,
  MlaLayer,
  DenseLayer,  ///< whose feed-forward is not a mixture of experts
  MoeLayer,
  Expert,
};

/// How a module reads a tensor: what decides whether it can be packed, and how coarsely it may be quantised.
enum class WeightUse : uint8_t {
  Parameter,         ///< norms, decays, biases, convolutions: as fp32
  Table,             ///< rows are gathered: the embedding
  Dense,             ///< read both ways, as plain elements: kv_b_proj
  ExactProduct,      ///< fp32 arithmetic: the router, the low-rank gates, beta
  Product,           ///< a large product
  SensitiveProduct,  ///< a large product whose errors show most: values, and what leaves a feed-forward
  LmHead,            ///< the product that makes logits
};

/// Whether a product reads it and nothing else does, so that blocks of it become panels.
constexpr bool is_product(WeightUse use) { return use >= WeightUse::ExactProduct; }

/// A row of the table.
struct WeightPattern {
  std::string_view pattern;  ///< "model.layers.L.self_attn.q_proj.weight"; L stands for the layer, E for the expert
  std::string_view field;    ///< "KimiDeltaAttention.q_proj"
  OncePer once_per;
  std::span<const Extent> shape;
  WeightUse use;
  std::span<const DType> dtypes;  ///< that it may be stored as; first what the published checkpoint uses
  ShardRule shard;
  bool any_shape = false;  ///< only the number of elements counts: A_log and dt_bias stand under several shapes

  /// Matrices may be of blocks too; vectors, convolutions and parameters may not.
  bool allows_blocks() const { return shape.size() == 2; }
  bool allows(StorageFormat format) const;
};

std::span<const WeightPattern> weight_patterns();

/// One tensor that a model must have.
struct ExpectedTensor {
  std::string name;
  Shape shape;
  const WeightPattern* pattern;

  DType published_dtype() const { return pattern->dtypes.front(); }
};

/// All tensors of the model, or those of one layer (from 0), in the order of the table and ascending by layer and expert.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);
std::vector<ExpectedTensor> expected_tensors_of_layer(const ModelConfig& config, size_t layer);

/// lm_head as a tensor of its own. A model with tied word embeddings does not store it: the embedding stands in for it.
ExpectedTensor lm_head_of(const ModelConfig& config);

/// What is wrong with the shape or dtype of a tensor that is there; empty if nothing.
std::string fault_of(const StoredTensor& tensor, const ExpectedTensor& expected);

/// Holds a store's tensors against what the model must have. @throws Corrupt with one message that lists everything that is
/// missing, surplus, of a wrong shape or of a wrong dtype, by pattern.
void check_tensors(const TensorStore& store, const ModelConfig& config);

/// The same for one layer: tensors outside "model.layers.<layer>." are not looked at, nor their files opened.
void check_tensors_of_layer(const TensorStore& store, const ModelConfig& config, size_t layer);

}  // namespace kilin

// How the modules read each tensor of a model: what decides whether it can be packed, and how coarse it may become.
#pragma once

#include <cstdint>

#include "weights/weight_map.h"

namespace kilin {

enum class WeightUse : uint8_t {
  Parameter,         ///< norms, decays, biases, convolutions: fp32 vectors
  Table,             ///< rows are gathered: the embedding
  Dense,             ///< read both ways, as plain elements: kv_b_proj
  ExactProduct,      ///< fp32 arithmetic: the router, the low-rank gates, beta
  Product,           ///< a large product
  SensitiveProduct,  ///< a large product whose errors show most: values, and what leaves a feed-forward
  LmHead,            ///< the product that makes logits
};

WeightUse use_of(const WeightPattern& pattern);

/// Whether a product reads it and nothing else does, so that blocks of it become panels.
constexpr bool is_product(WeightUse use) { return use >= WeightUse::ExactProduct; }

/// The product that makes logits as a tensor of its own, of every model: where word embeddings are tied, it is not stored, and
/// the embedding stands in for it.
ExpectedTensor lm_head_of(const ModelConfig& config);

}  // namespace kilin

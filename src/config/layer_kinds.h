// Which attention and which feed-forward each layer has, from either form of config.json.
#pragma once

#include <vector>

#include "config/config_reader.h"
#include "config/model_config.h"

namespace kilin {

/// From linear_attn_config's two lists (which count from 1), from layer_types, or from both if they agree. @throws as
/// ConfigReader
std::vector<AttentionKind> read_attention_kinds(const ConfigReader& in, size_t layers);

/// From first_k_dense_replace and moe_layer_freq, from mlp_layer_types, or from both if they agree. @throws as ConfigReader
std::vector<FeedForwardKind> read_feed_forward_kinds(const ConfigReader& in, size_t layers);

}  // namespace kilin

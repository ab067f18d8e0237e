// The standard names of a model's inner values, as researchers use them: the same words for every layer, whatever it is built
// of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kilin {

/// Values that the forward pass shows to taps. [T, ...]: tokens of the batch first.
enum class Value : uint8_t {
  TokenEmbeddings,       // [T, hidden]
  LayerInput,            // [T, hidden] the residual stream before the layer
  AttentionInput,        // [T, hidden] output of input_layernorm; self_attn.input or linear_attn.input
  AttentionQueries,      // KDA [T, heads x K] after convolution and SiLU, before the l2 norm
  AttentionKeys,         // KDA, the same
  AttentionValues,       // KDA [T, heads x V]
  Decays,                // KDA [T, heads x K] log decay, <= 0
  Betas,                 // KDA [T, heads]
  AttentionHeadOutputs,  // [T, heads x V] before the gated norm (KDA) or o_proj (MLA)
  AttentionOutput,       // [T, hidden] what attention adds to the stream
  MlpInput,              // [T, hidden] output of post_attention_layernorm
  RouterLogits,          // MoE [T, experts] before the sigmoid and the bias
  ExpertIndices,         // MoE [T, top_k] i32, ascending
  ExpertWeights,         // MoE [T, top_k] after renormalisation and scale
  RoutedOutput,          // MoE [T, hidden] sum of the experts' weighted outputs
  SharedExpertOutput,    // MoE [T, hidden]
  MlpOutput,             // [T, hidden] what the feed-forward adds to the stream
  LayerOutput,           // [T, hidden] the stream after the layer
  Norm,                  // [rows that want logits, hidden] the final norm's output
};

/// A value of one layer, counted from 0, or of the whole model.
struct Site {
  static constexpr int kModel = -1;
  Value value;
  int layer = kModel;
  friend bool operator==(const Site&, const Site&) = default;
};

/// "layers.3.layer_output", "layers.0.linear_attn.decays", "norm".
/// @param attention what the layer's attention is called: "linear_attn" (KDA) or "self_attn" (MLA)
std::string to_string(const Site& site, std::string_view attention);

}  // namespace kilin

// The standard names of a model's inner values, as researchers use them: the same words for every layer, whatever it is built
// of. One table holds them. The checkpoint's own paths reach the same values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kilin {

/// Values that the forward pass shows, in the order in which a token passes them. Some exist in one kind of block only;
/// `value_info` says in which.
enum class Value : uint8_t {
  InputIds,         // i32
  TokenEmbeddings,  //
  LayerInput,       // the residual stream before the layer
  AttentionInput,   // output of input_layernorm
  QProj,            // outputs of the projections, by the checkpoint's names
  KProj,
  VProj,
  FAProj,
  BProj,
  GAProj,
  FBProj,
  GBProj,
  KvAProj,
  KvALayernorm,
  AttentionQueries,  // KDA: after convolution and SiLU, before the l2 norm; MLA: by head
  KvBProj,
  AttentionKeys,
  AttentionValues,
  Decays,           // KDA: log decay, <= 0
  Betas,            // KDA
  AttentionScores,  // MLA: scaled, -inf where masked
  AttentionProbabilities,
  StateInput,            // KDA: the state that the first token meets
  States,                // KDA: after every token
  AttentionHeadOutputs,  // before the gated norm (KDA) or o_proj (MLA)
  StateOutput,           // KDA: after the last token
  ConvState,             // KDA: the last rows before the convolution, after the last token
  ONorm,                 // KDA: the gated norm's output
  AttentionOutput,       // what attention adds to the stream
  MlpInput,              // output of post_attention_layernorm
  GateProj,              // of a dense MLP
  UpProj,
  RouterLogits,   // MoE: before the sigmoid and the bias
  ExpertIndices,  // MoE: i32, ascending
  ExpertWeights,  // MoE: after renormalisation and scale
  ExpertOutputs,  // MoE: weighted, before the sum
  RoutedOutput,   // MoE: their sum
  SharedGateProj,
  SharedUpProj,
  SharedExpertOutput,
  MlpOutput,    // what the feed-forward adds to the stream
  LayerOutput,  // the stream after the layer
  Norm,         // the final norm's output
  Logits,
  NextTokenProbs,  // softmax of the last row
};
inline constexpr size_t kValues = static_cast<size_t>(Value::NextTokenProbs) + 1;

/// What a block is built of.
struct BlockKind {
  enum class Attention : uint8_t { Kda, Mla };
  enum class FeedForward : uint8_t { Dense, Moe };
  Attention attention = Attention::Kda;
  FeedForward feed_forward = FeedForward::Dense;
  friend bool operator==(const BlockKind&, const BlockKind&) = default;
};

/// A value of one layer, counted from 0, or of the whole model.
struct Site {
  static constexpr int kModel = -1;
  Value value;
  int layer = kModel;
  friend bool operator==(const Site&, const Site&) = default;
};

/// Whether the forward pass comes to `a` before it comes to `b`.
bool passes_before(const Site& a, const Site& b);

/// Which module a value belongs to.
enum class Owner : uint8_t { Model, Layer, Attention, Mlp };

/// Which blocks have a value of a block.
enum class HeldBy : uint8_t { Model, EveryBlock, Kda, Mla, Dense, Moe };

/// Where a value is computed only if it is asked for, by a path of its own that may move logits by 1e-5.
enum class Staged : uint8_t { Never, InMla, Always };

/// A row of the table.
struct ValueInfo {
  Value value;
  Owner owner;
  std::string_view name;  ///< "attention_scores", "q_proj.output": the last part of the standard name
  HeldBy held_by;
  bool writable;
  Staged staged;
  std::string_view shape;      ///< of one prompt, in words of config.json; S: tokens of the step, K: all tokens so far
  std::string_view mla_shape;  ///< MLA's shape if it differs, else empty
};
const ValueInfo& value_info(Value value);

/// Whether such a block has the value and only a staged path computes it there.
bool is_staged(Value value, BlockKind block);

/// The standard name: "layers.3.layer_output", "layers.0.linear_attn.decays", "norm".
/// @pre the site's layer is one of the blocks, if it has one
std::string name_of(const Site& site, std::span<const BlockKind> blocks);

/// The site that a name means: a standard name ("layers.3.layer_output", "layers[3].layer_output"), that of a module's output
/// or input ("layers.3.self_attn.o_proj.output"), or the checkpoint's own path to it
/// ("model.layers.3.block_sparse_moe.gate.output").
/// @throws Unavailable for a value that the block lacks, saying why; NotFound for an unknown name, naming the nearest ones, or
/// for a layer that does not exist
Site find_site(std::string_view name, std::span<const BlockKind> blocks);

/// A value that a model offers.
struct OfferedValue {
  std::string name;
  Site site;
  std::string_view shape;
  bool writable;
  bool staged;
};
/// All values that a model of these blocks offers, in the order of the pass.
std::vector<OfferedValue> support(std::span<const BlockKind> blocks);

}  // namespace kilin

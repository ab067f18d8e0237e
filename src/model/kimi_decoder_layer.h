// One layer: attention and feed-forward, each behind a norm and added to the residual stream.
#pragma once

#include <variant>

#include "model/kimi_delta_attention.h"
#include "model/kimi_mla_attention.h"
#include "model/kimi_mlp.h"
#include "model/kimi_moe.h"
#include "model/rms_norm.h"

namespace kilin {

class KimiDecoderLayer {
 public:
  /// @param layer from 0
  /// @param of_kind which of the layers with the same kind of attention this is, from 0: its place in their pool
  static KimiDecoderLayer load(WeightSource& source, const ModelConfig& config, size_t layer, size_t of_kind);

  /// Updates the stream x [T, hidden], fp32, in place.
  void forward(ExecContext& ctx, const LinearRecurrentBackend& backend, const ForwardBatch& batch, MatView<float> x) const;

 private:
  KimiDecoderLayer(std::variant<KimiDeltaAttention, KimiMlaAttention> self_attn, std::variant<KimiMlp, KimiMoe> mlp,
                   RmsNorm input_layernorm, RmsNorm post_attention_layernorm, size_t hidden, int layer);

  std::variant<KimiDeltaAttention, KimiMlaAttention> self_attn_;
  std::variant<KimiMlp, KimiMoe> mlp_;
  RmsNorm input_layernorm_, post_attention_layernorm_;
  size_t hidden_;
  int layer_;
};

}  // namespace kilin

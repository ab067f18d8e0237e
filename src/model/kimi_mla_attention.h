// Multi-head Latent Attention without rotary embeddings: keys and values of all heads come from one latent a token.
#pragma once

#include "config/model_config.h"
#include "model/forward_batch.h"
#include "model/linear.h"
#include "model/rms_norm.h"
#include "model/staged_mla.h"

namespace kilin {

class KimiMlaAttention {
 public:
  /// @param prefix "model.layers.N.self_attn."
  /// @param latent_layer which of the layers with latents this is, from 0
  static KimiMlaAttention load(WeightSource& source, const std::string& prefix, const ModelConfig& config, int layer,
                               size_t latent_layer);

  /// `x` is the normed stream [T, hidden]; `out` [T, hidden] gets this layer's contribution to it, of
  /// which ranks hold parts: the caller reduces.
  /// @throws InvalidArgument, NotImplemented for a batch that ForwardBatch::validate_latents refuses, or pools of other layers;
  /// nothing has moved then
  void forward(ExecContext& ctx, const ForwardBatch& batch, MatView<const float> x, MatView<float> out) const;

  size_t workspace_bytes(size_t tokens, size_t threads) const;

 private:
  static constexpr size_t kWave = 64;  // blocks of the past whose partial softmaxes are held at once (Decode)

  MlaParameters parameters() const;
  void show_queries(ExecContext& ctx, const ForwardBatch& batch, MatView<float> q) const;

  void attend(ExecContext& ctx, const ForwardBatch& batch, MatView<const float> q, MatView<float> heads) const;
  /// Prompts: keys and values of each block of the past are decompressed, then read by all heads and rows.
  void extend(ExecContext& ctx, const ForwardBatch& batch, size_t n, MatView<const float> q, MatView<float> heads) const;
  /// Generation: queries are taken into latent space and read the latents themselves. All rows, of whatever sequences, share
  /// the loops; row 0 is row `first` of the batch.
  void decode(ExecContext& ctx, const ForwardBatch& batch, size_t first, MatView<const float> q, MatView<float> heads) const;

  void count_attention(ExecContext& ctx, const ForwardBatch& batch) const;

  size_t query_dim() const { return nope_ + rope_; }
  size_t latent_width() const { return rank_ + rope_; }
  /// Rows of kv_b_proj: by head [k_nope | v].
  PackedMatrix key_rows(size_t head) const {
    return kv_b_proj_.view.slice_rows(head * (nope_ + value_), head * (nope_ + value_) + nope_);
  }
  PackedMatrix value_rows(size_t head) const {
    return kv_b_proj_.view.slice_rows(head * (nope_ + value_) + nope_, (head + 1) * (nope_ + value_));
  }
  /// Of a head's partial softmaxes over a wave of blocks; a cache line more, lest those of all heads share a few lines.
  size_t wave_width() const { return kWave * rank_ + 16; }
  size_t extend_bytes(size_t tokens, size_t threads) const;
  size_t decode_bytes(size_t tokens, size_t threads) const;

  Linear q_proj_;              // [heads x (nope + rope), hidden]
  Linear kv_a_proj_with_mqa_;  // [rank + rope, hidden]
  RmsNorm kv_a_layernorm_;     // [rank]
  DenseMatrix kv_b_proj_;      // [heads x (nope + value), rank]
  Linear o_proj_;              // [hidden, heads x value]
  size_t hidden_ = 0, heads_ = 0, nope_ = 0, rope_ = 0, value_ = 0, rank_ = 0;
  float scale_ = 0;
  int layer_ = 0;
  size_t latent_layer_ = 0;
};

}  // namespace kilin

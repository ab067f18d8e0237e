// The whole model: token ids to final hidden states, and those to logits.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/kimi_decoder_layer.h"

namespace kilin {

class KimiLinearForCausalLM {
 public:
  /// Called after each loaded layer with (layers done, layers in all).
  using Progress = std::function<void(size_t done, size_t total)>;

  /// Takes every tensor of the source; what is left over is an error. @throws Corrupt, Unsupported, NotFound
  static KimiLinearForCausalLM load(WeightSource& source, const ModelConfig& config, const Progress& progress = {});

  /// Runs the batch; moves the states and latents of its sequences on. `hidden` [logit_rows, hidden_size] gets the final norm's
  /// output for the rows that want logits. An Idle batch touches nothing, but its rank takes part in every collective.
  /// @throws InvalidArgument, NotImplemented for a batch that ForwardBatch::validate refuses; nothing has moved then
  void forward(ExecContext& ctx, const ForwardBatch& batch, MatView<float> hidden) const;

  /// logits [R, vocab_size] of R rows that forward gave. Callers with many rows go block by block: 2048 rows are 1.3 GB.
  void logits(ExecContext& ctx, MatView<const float> hidden, MatView<float> out) const;

  /// The final norm alone, for any rows of the residual stream. In place if x is out.
  void final_norm(ExecContext& ctx, MatView<const float> x, MatView<float> out) const;

  const ModelConfig& config() const { return config_; }

  /// Another backend for the KDA layers, such as one that records. Null puts the product's back.
  void set_recurrent_backend(std::shared_ptr<const LinearRecurrentBackend> backend);

  RecurrentStatePool::Dimensions state_dimensions() const { return state_dimensions(config_); }
  LatentKvPool::Dimensions latent_dimensions(KvType type) const { return latent_dimensions(config_, type); }
  static RecurrentStatePool::Dimensions state_dimensions(const ModelConfig& config);
  static LatentKvPool::Dimensions latent_dimensions(const ModelConfig& config, KvType type);

 private:
  ModelConfig config_;
  PackedMatrix embed_tokens_;  // [vocab, hidden], row by row
  std::vector<KimiDecoderLayer> layers_;
  RmsNorm norm_;
  Linear lm_head_;  // [vocab, hidden]
  std::shared_ptr<const LinearRecurrentBackend> backend_;
};

}  // namespace kilin

#include "model/kimi_linear_for_causal_lm.h"

#include <algorithm>

#include "core/error.h"
#include "core/float_mode.h"
#include "model/kda_backend.h"

namespace kilin {

KimiLinearForCausalLM KimiLinearForCausalLM::load(WeightSource& source, const ModelConfig& config, const Progress& progress) {
  KimiLinearForCausalLM m;
  m.config_ = config;
  m.backend_ = std::make_shared<KdaBackend>();
  m.embed_tokens_ = source.table("model.embed_tokens.weight");
  size_t kda_layers = 0, mla_layers = 0;
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    m.layers_.push_back(KimiDecoderLayer::load(source, config, layer, config.is_kda(layer) ? kda_layers++ : mla_layers++));
    if (progress) progress(layer + 1, config.num_hidden_layers);
  }
  m.norm_ = RmsNorm::load(source, "model.norm.weight", static_cast<float>(config.rms_norm_eps));
  m.lm_head_ = config.tie_word_embeddings ? Linear(source.tied_matrix("lm_head.weight", m.embed_tokens_))
                                          : Linear::load(source, "lm_head.weight");
  source.finish();
  return m;
}

void KimiLinearForCausalLM::forward(ExecContext& ctx, const ForwardBatch& batch, MatView<float> hidden) const {
  batch.validate(config_.vocab_size);
  if (hidden.rows() != batch.logit_rows.size() || hidden.cols() != config_.hidden_size)
    raise(ErrorCode::InvalidArgument, "hidden is [{}, {}]; expected [{}, {}]: a row for each of logit_rows", hidden.rows(),
          hidden.cols(), batch.logit_rows.size(), config_.hidden_size);
  FloatModeGuard float_mode;
  Workspace::Frame frame(ctx.workspace);
  auto x = frame.matrix(batch.tokens(), config_.hidden_size);  // [T, hidden] the residual stream

  {
    const StageScope stage = ctx.stage(Stage::Embedding);
    gather_rows(ctx, embed_tokens_, batch.token_ids, x);
  }
  ctx.tap(Value::TokenEmbeddings, Site::kModel, x);
  for (const KimiDecoderLayer& layer : layers_) layer.forward(ctx, *backend_, batch, x);

  const StageScope stage = ctx.stage(Stage::Norms);
  for (size_t i = 0; i < batch.logit_rows.size(); ++i) std::ranges::copy(x[batch.logit_rows[i]], hidden.row(i));
  norm_.apply(ctx, hidden, hidden);
  ctx.tap(Value::Norm, Site::kModel, hidden);
}

void KimiLinearForCausalLM::logits(ExecContext& ctx, MatView<const float> hidden, MatView<float> out) const {
  FloatModeGuard float_mode;
  Workspace::Frame frame(ctx.workspace);
  const StageScope stage = ctx.stage(Stage::LmHead);
  lm_head_.apply(ctx, ActivationRows(ctx, frame, hidden), out);
}

void KimiLinearForCausalLM::final_norm(ExecContext& ctx, MatView<const float> x, MatView<float> out) const {
  FloatModeGuard float_mode;
  norm_.apply(ctx, x, out);
}

void KimiLinearForCausalLM::set_recurrent_backend(std::shared_ptr<const LinearRecurrentBackend> backend) {
  backend_ = backend ? std::move(backend) : std::make_shared<KdaBackend>();
}

RecurrentStatePool::Dimensions KimiLinearForCausalLM::state_dimensions(const ModelConfig& c) {
  return {.layers = c.kda_layers(),
          .heads = c.kda_num_heads,
          .key_dim = c.kda_head_dim,
          .value_dim = c.kda_head_dim,
          .conv_rows = c.short_conv_kernel_size - 1,
          .conv_cols = 3 * c.kda_num_heads * c.kda_head_dim};
}

LatentKvPool::Dimensions KimiLinearForCausalLM::latent_dimensions(const ModelConfig& c, KvType type) {
  return {.layers = c.mla_layers(), .width = c.kv_lora_rank + c.qk_rope_head_dim, .type = type};
}

}  // namespace kilin

#include "model/kimi_decoder_layer.h"

namespace kilin {

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

KimiDecoderLayer::KimiDecoderLayer(std::variant<KimiDeltaAttention, KimiMlaAttention> self_attn,
                                   std::variant<KimiMlp, KimiMoe> mlp, RmsNorm input_layernorm,
                                   RmsNorm post_attention_layernorm, size_t hidden, int layer)
    : self_attn_(std::move(self_attn)),
      mlp_(std::move(mlp)),
      input_layernorm_(std::move(input_layernorm)),
      post_attention_layernorm_(std::move(post_attention_layernorm)),
      hidden_(hidden),
      layer_(layer) {}

KimiDecoderLayer KimiDecoderLayer::load(WeightSource& source, const ModelConfig& c, size_t layer, size_t of_kind) {
  using Attention = std::variant<KimiDeltaAttention, KimiMlaAttention>;
  using Mlp = std::variant<KimiMlp, KimiMoe>;
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const int number = static_cast<int>(layer);
  const auto eps = static_cast<float>(c.rms_norm_eps);
  return KimiDecoderLayer(
      c.is_kda(layer) ? Attention(KimiDeltaAttention::load(source, prefix + "self_attn.", c, number, of_kind))
                      : Attention(KimiMlaAttention::load(source, prefix + "self_attn.", c, number, of_kind)),
      c.is_moe(layer)
          ? Mlp(KimiMoe::load(source, prefix + "block_sparse_moe.", c, number))
          : Mlp(KimiMlp::load(source, prefix + "mlp.", {.layer = number, .gate = Value::GateProj, .up = Value::UpProj})),
      RmsNorm::load(source, prefix + "input_layernorm.weight", eps),
      RmsNorm::load(source, prefix + "post_attention_layernorm.weight", eps), c.hidden_size, number);
}

void KimiDecoderLayer::forward(ExecContext& ctx, const LinearRecurrentBackend& backend, const ForwardBatch& batch,
                               MatView<float> x) const {
  Workspace::Frame frame(ctx.workspace);
  auto normed = frame.matrix(x.rows(), hidden_);
  auto contribution = frame.matrix(x.rows(), hidden_);
  const StageScope stage = ctx.stage(Stage::Norms);  // the modules open their own inside

  ctx.tap(Value::LayerInput, layer_, x);
  input_layernorm_.apply(ctx, x, normed);
  ctx.tap(Value::AttentionInput, layer_, normed);
  std::visit(Overloaded{[&](const KimiDeltaAttention& kda) { kda.forward(ctx, backend, batch, normed, contribution); },
                        [&](const KimiMlaAttention& mla) { mla.forward(ctx, batch, normed, contribution); }},
             self_attn_);
  ctx.communicator.all_reduce(contribution);
  ctx.tap(Value::AttentionOutput, layer_, contribution);
  add(ctx, contribution, x);

  post_attention_layernorm_.apply(ctx, x, normed);
  ctx.tap(Value::MlpInput, layer_, normed);
  const ActivationRows rows(ctx, frame, normed);
  std::visit(Overloaded{[&](const KimiMoe& moe) { moe.forward(ctx, rows, contribution); },
                        [&](const KimiMlp& mlp) {
                          const StageScope dense = ctx.stage(Stage::DenseMlp);
                          mlp.forward(ctx, rows, contribution);
                        }},
             mlp_);
  ctx.communicator.all_reduce(contribution);
  ctx.tap(Value::MlpOutput, layer_, contribution);
  add(ctx, contribution, x);
  ctx.tap(Value::LayerOutput, layer_, x);
}

}  // namespace kilin

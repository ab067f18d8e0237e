#include "model/kimi_delta_attention.h"

namespace kilin {

namespace {

// The three convolutions as one, taps by row: a kernel takes channels side by side.
Tensor load_conv(WeightSource& source, const std::string& prefix) {
  const Tensor parts[] = {source.parameter(prefix + "q_conv1d.weight"), source.parameter(prefix + "k_conv1d.weight"),
                          source.parameter(prefix + "v_conv1d.weight")};
  const size_t width = parts[0].shape()[0], kernel = parts[0].shape()[2];  // [P, 1, W]
  Tensor all(DType::f32, {kernel, 3 * width});
  float* to = all.as<float>();
  for (const Tensor& part : parts)
    for (size_t c = 0; c < width; ++c, ++to)
      for (size_t j = 0; j < kernel; ++j) to[j * 3 * width] = part.as<const float>()[c * kernel + j];
  return all;
}

}  // namespace

KimiDeltaAttention KimiDeltaAttention::load(WeightSource& source, const std::string& prefix, const ModelConfig& c, int layer,
                                            size_t state_layer) {
  KimiDeltaAttention a;
  a.heads_ = c.kda_num_heads;
  a.head_dim_ = c.kda_head_dim;
  a.width_ = a.heads_ * a.head_dim_;
  a.eps_ = static_cast<float>(c.rms_norm_eps);
  a.layer_ = layer;
  a.state_layer_ = state_layer;
  a.q_proj_ = Linear::load(source, prefix + "q_proj.weight");
  a.k_proj_ = Linear::load(source, prefix + "k_proj.weight");
  a.v_proj_ = Linear::load(source, prefix + "v_proj.weight");
  a.conv_ = load_conv(source, prefix);
  a.A_log_ = source.parameter(prefix + "A_log");
  a.dt_bias_ = source.parameter(prefix + "dt_bias");
  a.f_a_proj_ = ExactLinear::load(source, prefix + "f_a_proj.weight");
  a.f_b_proj_ = ExactLinear::load(source, prefix + "f_b_proj.weight");
  a.g_a_proj_ = ExactLinear::load(source, prefix + "g_a_proj.weight");
  a.g_b_proj_ = ExactLinear::load(source, prefix + "g_b_proj.weight");
  a.b_proj_ = ExactLinear::load(source, prefix + "b_proj.weight");
  a.o_norm_ = source.parameter(prefix + "o_norm.weight");
  a.o_proj_ = Linear::load(source, prefix + "o_proj.weight");
  return a;
}

KdaParameters KimiDeltaAttention::parameters() const {
  return {.heads = heads_,
          .head_dim = head_dim_,
          .conv = {conv_.as<const float>(), conv_.shape()[0], 3 * width_},
          .A_log = A_log_.as<const float>(),
          .dt_bias = dt_bias_.as<const float>(),
          .o_norm = o_norm_.as<const float>(),
          .eps = eps_};
}

void KimiDeltaAttention::forward(ExecContext& ctx, const LinearRecurrentBackend& backend, const ForwardBatch& batch,
                                 MatView<const float> x, MatView<float> out) const {
  Workspace::Frame frame(ctx.workspace);
  const size_t tokens = x.rows();
  StageScope stage = ctx.stage(Stage::KdaProjections);
  const ActivationRows rows(ctx, frame, x);     // once: six products read them
  auto qkv = frame.matrix(tokens, 3 * width_);  // [T, 3P] raw q | k | v, before the convolution
  auto f_low = frame.matrix(tokens, head_dim_), g_low = frame.matrix(tokens, head_dim_);  // [T, K]
  auto heads = frame.matrix(tokens, width_);                                              // [T, heads x V]
  const KdaInputs inputs = {
      .qkv = qkv, .f = frame.matrix(tokens, width_), .b = frame.matrix(tokens, heads_), .gate = frame.matrix(tokens, width_)};

  const auto q = qkv.columns(0, width_), k = qkv.columns(width_, 2 * width_), v = qkv.columns(2 * width_, 3 * width_);
  matmul(ctx, {q_proj_.product(rows, q), k_proj_.product(rows, k), v_proj_.product(rows, v), f_a_proj_.product(rows, f_low),
               b_proj_.product(rows, inputs.b), g_a_proj_.product(rows, g_low)});
  ctx.tap(Value::QProj, layer_, q);
  ctx.tap(Value::KProj, layer_, k);
  ctx.tap(Value::VProj, layer_, v);
  ctx.tap(Value::FAProj, layer_, f_low);
  ctx.tap(Value::BProj, layer_, inputs.b);  // beta before the sigmoid
  ctx.tap(Value::GAProj, layer_, g_low);
  matmul(ctx, {f_b_proj_.product(f_low, inputs.f), g_b_proj_.product(g_low, inputs.gate)});  // no activation in between
  ctx.tap(Value::FBProj, layer_, inputs.f);  // decay before softplus: A_log and dt_bias come in the backend
  ctx.tap(Value::GBProj, layer_, inputs.gate);

  // Convolution, SiLU, l2norm, decays, recurrence; then the norm, its weight, and a *sigmoid* gate.
  backend.forward(ctx, batch, layer_, state_layer_, parameters(), inputs, heads);

  stage.next(Stage::KdaOutput);
  o_proj_.apply(ctx, ActivationRows(ctx, frame, heads), out);
}

}  // namespace kilin

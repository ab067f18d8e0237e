#include "model/kimi_mlp.h"

namespace kilin {

KimiMlp KimiMlp::load(WeightSource& source, const std::string& prefix, const MlpSites& sites) {
  KimiMlp m;
  m.sites_ = sites;
  m.gate_proj_ = Linear::load(source, prefix + "gate_proj.weight");
  m.up_proj_ = Linear::load(source, prefix + "up_proj.weight");
  m.down_proj_ = Linear::load(source, prefix + "down_proj.weight");
  return m;
}

void KimiMlp::forward(ExecContext& ctx, const ActivationRows& x, MatView<float> out) const {
  Workspace::Frame frame(ctx.workspace);
  const size_t tokens = x.exact().rows(), intermediate = gate_proj_.out_features();
  auto gate = frame.matrix(tokens, intermediate);
  auto up = frame.matrix(tokens, intermediate);
  matmul(ctx, {gate_proj_.product(x, gate), up_proj_.product(x, up)});
  ctx.tap(sites_.gate, sites_.layer, gate);
  ctx.tap(sites_.up, sites_.layer, up);
  silu_mul(ctx, gate, up);
  down_proj_.apply(ctx, ActivationRows(ctx, frame, gate), out);
}

}  // namespace kilin

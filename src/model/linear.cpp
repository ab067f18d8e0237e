#include "model/linear.h"

namespace kilin {

ActivationRows::ActivationRows(ExecContext& ctx, Workspace::Frame& frame, MatView<const float> x) : exact_(x), rounded_(x) {
  const StageScope stage = ctx.stage(Stage::Activations);
  switch (ctx.activations) {
    case ActivationType::f32:
      return;
    case ActivationType::bf16: {
      const MatView<float> copy = frame.matrix(x.rows(), x.cols());
      ctx.pool.parallel_for(x.rows(), grain(x.cols()), [&](const Slice& s) {
        ctx.kernels.round_to_bf16(x.rows(s.begin, s.end), copy.rows(s.begin, s.end));
      });
      rounded_ = copy;
      return;
    }
    case ActivationType::int8:
      int8_ = take_int8_rows(frame, x.rows(), x.cols());
      quantize_rows(ctx, x, *int8_);
      return;
  }
}

}  // namespace kilin

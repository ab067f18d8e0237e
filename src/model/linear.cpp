#include "model/linear.h"

namespace kilin {

ActivationType rounding_of(const PackedMatrix& weight) {
  if (weight.has_panels()) return ActivationType::int8;
  return weight.format() == StorageFormat(DType::bf16) ? ActivationType::bf16 : ActivationType::f32;
}

ActivationRows::ActivationRows(ExecContext& ctx, Workspace::Frame& frame, MatView<const float> x)
    : exact_(x), rounded_(x), type_(ctx.activations) {
  const StageScope stage = ctx.stage(Stage::Activations);
  switch (type_) {
    case ActivationType::f32:
      return;
    case ActivationType::bf16: {
      const MatView<bf16> rounded = take_bf16_rows(frame, x.rows(), x.cols());
      round_to_bf16(ctx, x, rounded);
      rounded_ = MatView<const bf16>(rounded);
      return;
    }
    case ActivationType::int8: {
      const Int8Rows rounded = take_int8_rows(frame, x.rows(), x.cols());
      quantize_rows(ctx, x, rounded);
      rounded_ = rounded;
      return;
    }
  }
}

}  // namespace kilin

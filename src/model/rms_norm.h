// Root-mean-square norms with their weights.
#pragma once

#include "model/ops.h"
#include "weights/weight_source.h"

namespace kilin {

/// out = x * rsqrt(mean(x^2) + eps) * weight, by row, in fp32.
class RmsNorm {
 public:
  RmsNorm() = default;
  static RmsNorm load(WeightSource& source, const std::string& name, float eps) { return RmsNorm(source.parameter(name), eps); }

  /// In place if x is out.
  void apply(ExecContext& ctx, MatView<const float> x, MatView<float> out) const {
    rms_norm(ctx, x, weight_.as<const float>(), eps_, out);
  }

 private:
  RmsNorm(Tensor weight, float eps) : weight_(std::move(weight)), eps_(eps) {}
  Tensor weight_;
  float eps_ = 0;
};

}  // namespace kilin

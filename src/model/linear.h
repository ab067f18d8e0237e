// Matrix products with weights. None of the model's has a bias.
#pragma once

#include "model/ops.h"
#include "model/weight_source.h"

namespace kilin {

/// The rows that several products read, as they are and as the activations' type has them: rounded once, not once a product.
class ActivationRows {
 public:
  /// @param x must live as long as this. A rounded copy, where one is needed, is taken from `frame`.
  ActivationRows(ExecContext& ctx, Workspace::Frame& frame, MatView<const float> x);

  MatView<const float> exact() const { return exact_; }
  MatView<const float> rounded() const { return rounded_; }

  /// What the constructor may take from the workspace.
  static size_t workspace_bytes(size_t rows, size_t cols) { return Workspace::rounded(rows * cols * sizeof(float)); }

 private:
  MatView<const float> exact_;
  MatView<const float> rounded_;
};

/// A large product, y = x W^T: reads its rows in the activations' type.
class Linear {
 public:
  Linear() = default;
  static Linear load(WeightSource& source, const std::string& name, size_t out_features, size_t in_features) {
    return Linear(source.matrix(name, out_features, in_features));
  }

  /// The same bytes as the embedding: lm_head where the words are tied.
  static Linear tied_to(const PackedMatrix& weight) { return Linear(weight); }

  size_t out_features() const { return weight_.rows(); }

  /// x [T, in], y [T, out]
  void apply(ExecContext& ctx, const ActivationRows& x, MatView<float> y) const { matmul(ctx, weight_, x.rounded(), y); }

 private:
  explicit Linear(const PackedMatrix& weight) : weight_(weight) {}
  PackedMatrix weight_;
};

/// A product that is fp32 whatever the activations' type: the router and the low-rank gates, 1 % of the work, whose rounding
/// would show most.
class ExactLinear {
 public:
  ExactLinear() = default;
  static ExactLinear load(WeightSource& source, const std::string& name, size_t out_features, size_t in_features) {
    return ExactLinear(source.matrix(name, out_features, in_features));
  }

  void apply(ExecContext& ctx, const ActivationRows& x, MatView<float> y) const { matmul(ctx, weight_, x.exact(), y); }
  void apply(ExecContext& ctx, MatView<const float> x, MatView<float> y) const { matmul(ctx, weight_, x, y); }

 private:
  explicit ExactLinear(const PackedMatrix& weight) : weight_(weight) {}
  PackedMatrix weight_;
};

}  // namespace kilin

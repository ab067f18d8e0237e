// Matrix products with weights. None of the model's has a bias.
#pragma once

#include <string>

#include "model/ops.h"
#include "weights/weight_source.h"

namespace kilin {

/// The type, beside fp32, that a product with `weight` can read its rows in.
ActivationType rounding_of(const PackedMatrix& weight);

/// Rows that several products read: as they are, and rounded to the activations' type, once for all products.
class ActivationRows {
 public:
  /// @param x must live as long as this. What is rounded is taken from `frame`.
  ActivationRows(ExecContext& ctx, Workspace::Frame& frame, MatView<const float> x);

  MatView<const float> exact() const { return exact_; }

  /// The rows for a product whose weight takes `rounding`: rounded if that is the activations' type, else exact.
  ProductRows as(ActivationType rounding) const { return rounding == type_ ? rounded_ : exact_; }

 private:
  MatView<const float> exact_;
  ProductRows rounded_;
  ActivationType type_;
};

/// What a product reads of its rows.
enum class Inputs : uint8_t {
  Rounded,  ///< in the activations' type if the weight goes with it
  Exact,    ///< fp32 whatever that type is
};

/// y = x W^T.
template <Inputs inputs>
class BasicLinear {
 public:
  BasicLinear() = default;
  explicit BasicLinear(const PackedMatrix& weight) : weight_(weight) {}
  static BasicLinear load(WeightSource& source, const std::string& name) { return BasicLinear(source.matrix(name)); }

  size_t out_features() const { return weight_.rows(); }

  /// x [T, in], y [T, out]
  void apply(ExecContext& ctx, const ActivationRows& x, MatView<float> y) const { matmul(ctx, {product(x, y)}); }

  /// The product alone, for a loop that it shares with others.
  Product product(const ActivationRows& x, MatView<float> y) const {
    if constexpr (inputs == Inputs::Exact)
      return product(x.exact(), y);
    else
      return {weight_, x.as(rounding_of(weight_)), y};
  }
  Product product(MatView<const float> x, MatView<float> y) const requires(inputs == Inputs::Exact) { return {weight_, x, y}; }

 private:
  PackedMatrix weight_;
};

/// A large product.
using Linear = BasicLinear<Inputs::Rounded>;

/// The router and the low-rank gates: 1 % of the work, whose rounding would show most.
using ExactLinear = BasicLinear<Inputs::Exact>;

}  // namespace kilin

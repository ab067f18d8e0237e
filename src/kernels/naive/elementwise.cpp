// Ops whose every output depends on one element of each input.
#include <cmath>

#include "kernels/naive/naive.h"

namespace kilin::naive {

namespace {

float sigmoid_of(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

void round_to_bf16(MatView<const float> x, MatView<bf16> out) noexcept {
  for (size_t r = 0; r < x.rows(); ++r)
    for (size_t i = 0; i < x.cols(); ++i) out.row(r)[i] = to_bf16(x.row(r)[i]);
}

void add(MatView<const float> x, MatView<float> out) noexcept {
  for (size_t r = 0; r < x.rows(); ++r)
    for (size_t i = 0; i < x.cols(); ++i) out.row(r)[i] += x.row(r)[i];
}

void add_scaled(const float* x, float scale, size_t n, float* out) noexcept {
  for (size_t i = 0; i < n; ++i) out[i] += scale * x[i];
}

void silu_mul(MatView<const float> gate, MatView<const float> up, MatView<float> out) noexcept {
  for (size_t r = 0; r < gate.rows(); ++r)
    for (size_t i = 0; i < gate.cols(); ++i) {
      const float x = gate.row(r)[i];
      out.row(r)[i] = x * sigmoid_of(x) * up.row(r)[i];
    }
}

void sigmoid(MatView<const float> x, MatView<float> out) noexcept {
  for (size_t r = 0; r < x.rows(); ++r)
    for (size_t i = 0; i < x.cols(); ++i) out.row(r)[i] = sigmoid_of(x.row(r)[i]);
}

void kda_gate(MatView<const float> f, const float* A_log, const float* dt_bias, size_t head_dim, MatView<float> g) noexcept {
  for (size_t t = 0; t < f.rows(); ++t)
    for (size_t c = 0; c < f.cols(); ++c) {
      const float y = f.row(t)[c] + dt_bias[c];
      const float softplus = y > 20 ? y : std::log1p(std::exp(y));
      g.row(t)[c] = -std::exp(A_log[c / head_dim]) * softplus;
    }
}

}  // namespace kilin::naive

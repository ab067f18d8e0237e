// Norms over a row or over a head's share of one.
#include <cmath>

#include "kernels/naive/naive.h"

namespace kilin::naive {

namespace {

float sum_of_squares(const float* x, size_t n) {
  float sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return sum;
}

}  // namespace

void rms_norm(MatView<const float> x, const float* weight, float eps, MatView<float> out) noexcept {
  for (size_t r = 0; r < x.rows(); ++r) {
    const float mean = sum_of_squares(x.row(r), x.cols()) / static_cast<float>(x.cols());
    const float inverse = 1 / std::sqrt(mean + eps);
    for (size_t i = 0; i < x.cols(); ++i) out.row(r)[i] = x.row(r)[i] * inverse * weight[i];
  }
}

void gated_rms_norm(MatView<float> x, const float* weight, MatView<const float> gate, size_t head_dim, float eps) noexcept {
  for (size_t t = 0; t < x.rows(); ++t)
    for (size_t head = 0; head < x.cols(); head += head_dim) {
      float* xh = x.row(t) + head;
      const float mean = sum_of_squares(xh, head_dim) / static_cast<float>(head_dim);
      const float inverse = 1 / std::sqrt(mean + eps);
      for (size_t i = 0; i < head_dim; ++i) xh[i] = xh[i] * inverse * weight[i] / (1 + std::exp(-gate.row(t)[head + i]));
    }
}

void l2_norm(MatView<float> x, size_t head_dim, float scale) noexcept {
  for (size_t t = 0; t < x.rows(); ++t)
    for (size_t head = 0; head < x.cols(); head += head_dim) {
      float* xh = x.row(t) + head;
      const float inverse = 1 / std::sqrt(sum_of_squares(xh, head_dim) + 1e-6f);
      for (size_t i = 0; i < head_dim; ++i) xh[i] = xh[i] * inverse * scale;
    }
}

}  // namespace kilin::naive

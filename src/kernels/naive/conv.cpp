// The short convolution of KDA's q, k and v.
#include <cmath>

#include "kernels/naive/naive.h"

namespace kilin::naive {

void causal_conv_silu(MatView<const float> x, MatView<const float> weight, MatView<float> tail, MatView<float> out) noexcept {
  const size_t tokens = x.rows(), past = tail.rows(), width = weight.rows();
  // Row i of the tail followed by x.
  const auto joined = [&](size_t i, size_t c) { return i < past ? tail.row(i)[c] : x.row(i - past)[c]; };

  for (size_t t = 0; t < tokens; ++t)
    for (size_t c = 0; c < x.cols(); ++c) {
      float sum = 0;
      for (size_t j = 0; j < width; ++j) sum += weight.row(j)[c] * joined(t + j, c);
      out.row(t)[c] = sum / (1 + std::exp(-sum));
    }
  for (size_t i = 0; i < past; ++i)  // ascending: row i comes from a row that is not overwritten yet
    for (size_t c = 0; c < x.cols(); ++c) tail.row(i)[c] = joined(tokens + i, c);
}

}  // namespace kilin::naive

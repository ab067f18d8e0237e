// Norms over a row or over a head's share of one.

// One chain per lane, then one sum over the lanes.
inline float sum_of_squares(const float* x, size_t n) {
  Vec sum = zero();
  size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Vec v = load(x + i);
    sum = fma(v, v, sum);
  }
  if (i < n) {
    const Vec v = load_first(x + i, n - i);
    sum = fma(v, v, sum);
  }
  return sum_lanes(sum);
}

// Square root and division are rounded correctly on every machine: no approximation, no libm.
inline float inverse_rms(const float* x, size_t n, float eps) {
  return 1 / std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps);
}

struct ScaleBy {
  const float* x;
  float inverse;
  const float* weight;
  float* out;
  void operator()(size_t i, size_t n) const {
    store_up_to(out + i, load_up_to(x + i, n) * splat(inverse) * load_up_to(weight + i, n), n);
  }
};

void rms_norm(MatView<const float> x, const float* weight, float eps, MatView<float> out) noexcept {
  for (size_t r = 0; r < x.rows(); ++r)
    for_each_vector(x.cols(), ScaleBy{x.row(r), inverse_rms(x.row(r), x.cols(), eps), weight, out.row(r)});
}

struct ScaleAndGate {
  float* x;
  float inverse;
  const float* weight;
  const float* gate;
  void operator()(size_t i, size_t n) const {
    const Vec normed = load_up_to(x + i, n) * splat(inverse) * load_up_to(weight + i, n);
    store_up_to(x + i, normed * sigmoid(load_up_to(gate + i, n)), n);
  }
};

void gated_rms_norm(MatView<float> x, const float* weight, MatView<const float> gate, size_t head_dim, float eps) noexcept {
  for (size_t t = 0; t < x.rows(); ++t)
    for (size_t head = 0; head < x.cols(); head += head_dim) {
      float* xh = x.row(t) + head;
      for_each_vector(head_dim, ScaleAndGate{xh, inverse_rms(xh, head_dim, eps), weight, gate.row(t) + head});
    }
}

struct ScaleTwice {
  float* x;
  float inverse;
  float scale;
  void operator()(size_t i, size_t n) const { store_up_to(x + i, load_up_to(x + i, n) * splat(inverse) * splat(scale), n); }
};

void l2_norm(MatView<float> x, size_t head_dim, float scale) noexcept {
  for (size_t t = 0; t < x.rows(); ++t)
    for (size_t head = 0; head < x.cols(); head += head_dim) {
      float* xh = x.row(t) + head;
      for_each_vector(head_dim, ScaleTwice{xh, 1 / std::sqrt(sum_of_squares(xh, head_dim) + 1e-6f), scale});
    }
}

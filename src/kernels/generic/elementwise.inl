// Ops whose every output depends on one element of each input.

void round_to_bf16(MatView<const float> x, MatView<bf16> out) noexcept {
  for (size_t r = 0; r < x.rows(); ++r) for_each_vector(x.cols(), RoundToBf16{x.row(r), out.row(r)});
}

struct Add {
  const float* x;
  float* out;
  void operator()(size_t i, size_t n) const { store_up_to(out + i, load_up_to(out + i, n) + load_up_to(x + i, n), n); }
};

void add(MatView<const float> x, MatView<float> out) noexcept {
  for (size_t r = 0; r < x.rows(); ++r) for_each_vector(x.cols(), Add{x.row(r), out.row(r)});
}

struct AddScaled {
  const float* x;
  float scale;
  float* out;
  void operator()(size_t i, size_t n) const {
    store_up_to(out + i, fma(splat(scale), load_up_to(x + i, n), load_up_to(out + i, n)), n);
  }
};

void add_scaled(const float* x, float scale, size_t n, float* out) noexcept { for_each_vector(n, AddScaled{x, scale, out}); }

struct SiluMul {
  const float* gate;
  const float* up;
  float* out;
  void operator()(size_t i, size_t n) const {
    const Vec g = load_up_to(gate + i, n);
    store_up_to(out + i, g * sigmoid(g) * load_up_to(up + i, n), n);
  }
};

void silu_mul(MatView<const float> gate, MatView<const float> up, MatView<float> out) noexcept {
  for (size_t r = 0; r < gate.rows(); ++r) for_each_vector(gate.cols(), SiluMul{gate.row(r), up.row(r), out.row(r)});
}

struct Sigmoid {
  const float* x;
  float* out;
  void operator()(size_t i, size_t n) const { store_up_to(out + i, sigmoid(load_up_to(x + i, n)), n); }
};

void sigmoid(MatView<const float> x, MatView<float> out) noexcept {
  for (size_t r = 0; r < x.rows(); ++r) for_each_vector(x.cols(), Sigmoid{x.row(r), out.row(r)});
}

struct KdaGate {
  const float* f;
  const float* dt_bias;
  float minus_rate;  // -exp(A_log)
  float* g;
  void operator()(size_t i, size_t n) const {
    store_up_to(g + i, splat(minus_rate) * softplus(load_up_to(f + i, n) + load_up_to(dt_bias + i, n)), n);
  }
};

void kda_gate(MatView<const float> f, const float* A_log, const float* dt_bias, size_t head_dim, MatView<float> g) noexcept {
  for (size_t h = 0; h * head_dim < f.cols(); ++h) {
    const float minus_rate = -exp(A_log[h]);
    const size_t first = h * head_dim;
    for (size_t t = 0; t < f.rows(); ++t)
      for_each_vector(head_dim, KdaGate{f.row(t) + first, dt_bias + first, minus_rate, g.row(t) + first});
  }
}

struct ExpShifted {
  const float* x;
  float max;
  float scale;
  float* p;
  void operator()(size_t i, size_t n) const { store_up_to(p + i, exp((load_up_to(x + i, n) - splat(max)) * splat(scale)), n); }
};

void exp_shifted(const float* x, size_t n, float max, float scale, float* p) noexcept {
  for_each_vector(n, ExpShifted{x, max, scale, p});
}

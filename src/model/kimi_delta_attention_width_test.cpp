// One KDA layer of any width against a loop in fp64; the golden cases are of one width only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/random.h"
#include "support/compare.h"
#include "support/kda_layer.h"
#include "support/recorder.h"

namespace kilin {
namespace {

using Layer = testing::KdaLayer;
using Floats = Layer::Floats;

// Tensors made by a test.
class MadeUp final : public TensorStore {
 public:
  void add(const std::string& name, const Shape& shape, Floats values) {
    names_.push_back(name);
    std::ranges::sort(names_);
    tensors_[name] = {shape, std::move(values)};
  }
  const Floats& values(const std::string& name) const { return tensors_.at(name).second; }
  const std::vector<std::string>& names() const override { return names_; }
  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto found = tensors_.find(std::string(name));
    if (found == tensors_.end()) return std::nullopt;
    const auto& [shape, values] = found->second;
    return StoredTensor{std::string(name), DType::f32, shape, std::as_bytes(std::span(values)), source_};
  }
  const std::string& source() const override { return source_; }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::pair<Shape, Floats>> tensors_;
  std::string source_ = "made up";
};

// The layer as golden/README.md states it, token by token in fp64, sharing no code with the product.
std::vector<double> reference_layer(const MadeUp& w, const Floats& x, size_t hidden, size_t heads, size_t d) {
  const size_t tokens = x.size() / hidden, width = heads * d;
  using Doubles = std::vector<double>;
  const auto product = [&](const Doubles& in, size_t cols, const std::string& name, size_t rows) {
    const Floats& m = w.values(name);
    Doubles out(tokens * rows);
    for (size_t t = 0; t < tokens; ++t)
      for (size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (size_t c = 0; c < cols; ++c) sum += in[t * cols + c] * double{m[r * cols + c]};
        out[t * rows + r] = sum;
      }
    return out;
  };
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const Doubles in(x.begin(), x.end());
  Doubles streams[3];
  const char* names[] = {"q", "k", "v"};
  for (size_t s = 0; s < 3; ++s) {
    const Doubles raw = product(in, hidden, std::string(names[s]) + "_proj.weight", width);
    const Floats& conv = w.values(std::string(names[s]) + "_conv1d.weight");
    streams[s].resize(raw.size());
    for (size_t t = 0; t < tokens; ++t)
      for (size_t c = 0; c < width; ++c) {
        double u = 0;
        for (size_t j = 0; j < 4; ++j)
          if (t + j >= 3) u += double{conv[c * 4 + j]} * raw[(t + j - 3) * width + c];
        streams[s][t * width + c] = u * sigmoid(u);
      }
  }
  const Doubles f = product(product(in, hidden, "f_a_proj.weight", d), d, "f_b_proj.weight", width);
  const Doubles gate = product(product(in, hidden, "g_a_proj.weight", d), d, "g_b_proj.weight", width);
  const Doubles b = product(in, hidden, "b_proj.weight", heads);
  Doubles normed(tokens * width);
  for (size_t h = 0; h < heads; ++h) {
    Doubles state(d * d);  // [K, V]
    for (size_t t = 0; t < tokens; ++t) {
      const size_t at = t * width + h * d;
      double qq = 0, kk = 0;
      for (size_t i = 0; i < d; ++i) {
        qq += streams[0][at + i] * streams[0][at + i];
        kk += streams[1][at + i] * streams[1][at + i];
      }
      Doubles q(d), k(d), o(d), r(d);
      for (size_t i = 0; i < d; ++i) {
        q[i] = streams[0][at + i] / std::sqrt(qq + 1e-6) / std::sqrt(double(d));
        k[i] = streams[1][at + i] / std::sqrt(kk + 1e-6);
        const double z = f[at + i] + double{w.values("dt_bias")[h * d + i]};
        const double g = -std::exp(double{w.values("A_log")[h]}) * std::log1p(std::exp(z));
        for (size_t v = 0; v < d; ++v) state[i * d + v] *= std::exp(g);
      }
      for (size_t v = 0; v < d; ++v) r[v] = streams[2][at + v];
      for (size_t i = 0; i < d; ++i)
        for (size_t v = 0; v < d; ++v) r[v] -= state[i * d + v] * k[i];
      const double beta = sigmoid(b[t * heads + h]);
      for (size_t i = 0; i < d; ++i)
        for (size_t v = 0; v < d; ++v) o[v] += (state[i * d + v] += k[i] * beta * r[v]) * q[i];
      double mean = 0;
      for (double v : o) mean += v * v / double(d);
      for (size_t v = 0; v < d; ++v)
        normed[at + v] = o[v] / std::sqrt(mean + 1e-5) * double{w.values("o_norm.weight")[v]} * sigmoid(gate[at + v]);
    }
  }
  return product(normed, width, "o_proj.weight", hidden);
}

MadeUp made_up_layer(size_t hidden, size_t heads, size_t d) {
  MadeUp w;
  uint64_t seed = 1;
  const auto add = [&](const std::string& name, const Shape& shape, double scale, double centre = 0) {
    Floats values(shape.elements());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(centre + scale * (2 * random_uniform(seed, i) - 1));
    w.add(name, shape, std::move(values));
    ++seed;
  };
  const size_t width = heads * d;
  const double in = std::sqrt(3.0 / double(hidden)), low = std::sqrt(3.0 / double(d));
  for (const char* s : {"q", "k", "v"}) {
    add(std::string(s) + "_proj.weight", {width, hidden}, in);
    add(std::string(s) + "_conv1d.weight", {width, 1, 4}, 0.5);
  }
  add("A_log", {1, 1, heads, 1}, 1.0, 1.0);
  add("dt_bias", {width}, 1.5, -4.0);
  for (const char* s : {"f", "g"}) {
    add(std::string(s) + "_a_proj.weight", {d, hidden}, in);
    add(std::string(s) + "_b_proj.weight", {width, d}, low);
  }
  add("b_proj.weight", {heads, hidden}, in);
  add("o_norm.weight", {d}, 0.2, 1.0);
  add("o_proj.weight", {hidden, width}, std::sqrt(3.0 / double(width)));
  return w;
}

void expect_reference(size_t hidden, size_t heads, size_t d, size_t tokens) {
  const MadeUp weights = made_up_layer(hidden, heads, d);
  Floats x(tokens * hidden);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(2 * random_uniform(99, i) - 1);
  const std::vector<double> reference = reference_layer(weights, x, hidden, heads, d);
  const Floats truth(reference.begin(), reference.end());
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode})
    for (size_t start : {size_t{0}, size_t{50}, size_t{1} << 20}) {  // the grid's place must not matter
      Layer layer(weights, testing::kda_config(hidden, heads, d), 1);
      EXPECT_CLOSE_TO_MAX(layer.run(x, hidden, {0, tokens}, mode, start), truth, 5e-6) << to_string(mode) << " from " << start;
    }
}

TEST(KimiDeltaAttention, TheRealWidthAgreesWithALoopInFp64) { expect_reference(2304, 32, 128, 20); }

TEST(KimiDeltaAttention, HeadsOfAnyWidthAgreeWithALoopInFp64) {
  for (size_t d : {17u, 20u, 32u, 48u, 64u}) expect_reference(40, 3, d, 70);
}

TEST(KimiDeltaAttention, ShiftingAPromptByMultiplesOf64ChangesNoByte) {
  const MadeUp weights = made_up_layer(64, 2, 32);
  Floats x(150 * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(2 * random_uniform(98, i) - 1);
  const auto from = [&](size_t start) {
    Layer layer(weights, testing::kda_config(64, 2, 32), 1);
    return layer.run(x, 64, {0, 150}, ForwardMode::Extend, start);
  };
  const Floats at_zero = from(0);
  for (size_t start : {size_t{64}, size_t{6400}, size_t{1} << 30}) EXPECT_BYTES_EQ(from(start), at_zero) << start;
}

TEST(KimiDeltaAttention, StagesOneAfterTheOtherForTapsGiveTheSameBytesAsHeadByHead) {
  const MadeUp weights = made_up_layer(64, 3, 20);
  Floats x(450 * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(2 * random_uniform(97, i) - 1);
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode})
    for (size_t start : {0, 50, 64, 100}) {
      Layer watched(weights, testing::kda_config(64, 3, 20), 2), alone(weights, testing::kda_config(64, 3, 20), 2);
      testing::Recorder recorder;
      EXPECT_BYTES_EQ(watched.run(x, 64, {0, 300, 450}, mode, start, &recorder), alone.run(x, 64, {0, 300, 450}, mode, start))
          << to_string(mode) << " from " << start;
      for (size_t n : {0, 1}) {
        RecurrentStatePool &a = watched.pools.states, &b = alone.pools.states;
        EXPECT_BYTES_EQ(a.snapshot(watched.handles[n].slot()).values, b.snapshot(alone.handles[n].slot()).values)
            << to_string(mode) << " from " << start << ", sequence " << n;
      }
    }
}

}  // namespace
}  // namespace kilin

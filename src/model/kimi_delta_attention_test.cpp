// One KDA layer: the 14 golden cases at the real head size, and the real width against a loop in fp64.
#include "model/kimi_delta_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "checkpoint/safetensors.h"
#include "core/random.h"
#include "model/kda_backend.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/isas.h"
#include "support/recorder.h"

namespace kilin {
namespace {

using testing::Recorder;

using Floats = std::vector<float>;

Floats floats(const StoredTensor& t) {
  const auto* p = reinterpret_cast<const float*>(t.bytes.data());
  EXPECT_EQ(t.format, DType::f32) << t.name;
  return {p, p + t.elements()};
}

// Tensors of one store, some of them replaced by another's.
class Overlay final : public TensorStore {
 public:
  Overlay(std::shared_ptr<const TensorStore> below, std::shared_ptr<const TensorStore> above)
      : below_(std::move(below)), above_(std::move(above)) {}
  const std::vector<std::string>& names() const override { return below_->names(); }
  std::optional<StoredTensor> find(std::string_view name) const override {
    if (above_)
      if (auto t = above_->find(name)) return t;
    return below_->find(name);
  }
  const std::string& source() const override { return below_->source(); }

 private:
  std::shared_ptr<const TensorStore> below_, above_;
};

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

ModelConfig layer_config(size_t hidden, size_t heads, size_t head_dim) {
  ModelConfig c;
  c.hidden_size = hidden;
  c.kda_num_heads = heads;
  c.kda_head_dim = head_dim;
  c.short_conv_kernel_size = 4;
  c.rms_norm_eps = 1e-5;
  return c;
}

// A layer with its states, ready to run.
struct Layer {
  Layer(const TensorStore& store, const ModelConfig& config, size_t sequences, ActivationType activations = ActivationType::f32,
        const KernelChoice& choice = KernelChoice::from_environment())
      : source(WeightSource::unchecked(std::shared_ptr<const TensorStore>(std::shared_ptr<void>(), &store))),
        attention(KimiDeltaAttention::load(source, "", config, 0, 0)),
        kernels(select_kernels(CpuInfo::detect(), choice)),
        pools{RecurrentStatePool({.layers = 1,
                                  .heads = config.kda_num_heads,
                                  .key_dim = config.kda_head_dim,
                                  .value_dim = config.kda_head_dim,
                                  .conv_rows = 3,
                                  .conv_cols = 3 * config.kda_width()},
                                 sequences),
              LatentKvPool({.layers = 0, .width = 1, .type = KvType::f32}, 0)},
        activation_type(activations) {
    for (size_t n = 0; n < sequences; ++n) handles.push_back(pools.states.acquire());
  }

  Floats run(const Floats& x, size_t hidden, const std::vector<size_t>& cu_seqlens, ForwardMode mode, size_t start = 0,
             Taps* taps = nullptr) {
    const size_t tokens = x.size() / hidden;
    Workspace workspace(attention.workspace_bytes(backend, tokens, threads.size()));
    std::vector<SequenceSpan> spans;
    for (const StateHandle& handle : handles)
      spans.push_back({.mode = mode, .start = start, .state_slot = handle.slot(), .pages = {}});
    const std::vector<int32_t> ids(tokens);
    const ForwardBatch batch = {ids, cu_seqlens, spans, {}, &pools};
    ExecContext ctx = {threads, kernels, communicator, workspace, taps, activation_type};
    Floats out(x.size());
    attention.forward(ctx, backend, batch, {x.data(), tokens, hidden}, {out.data(), tokens, hidden});
    return out;
  }

  WeightSource source;
  KimiDeltaAttention attention;
  KernelTable kernels;
  ThreadPool threads{2};
  LocalCommunicator communicator;
  KdaBackend backend;
  MemoryPools pools;
  std::vector<StateHandle> handles;
  ActivationType activation_type;
};

constexpr size_t kHidden = 256, kHeads = 2, kDim = 128;

struct Case {
  explicit Case(const std::filesystem::path& path) : file(SafetensorsFile::open(path)) {
    x = floats(file->require("hidden_states"));
    if (const auto cu = file->find("cu_seqlens")) {
      const auto* p = reinterpret_cast<const int32_t*>(cu->bytes.data());
      cu_seqlens.assign(p, p + cu->elements());
    } else {
      cu_seqlens = {0, x.size() / kHidden};
    }
  }
  size_t sequences() const { return cu_seqlens.size() - 1; }

  void set_initial_states(Layer& layer, bool with_conv) const {
    const auto initial = file->find("initial_recurrent_state");
    if (!initial) return;
    const Floats state = floats(*initial);
    for (size_t n = 0; n < sequences(); ++n)
      for (size_t h = 0; h < kHeads; ++h)
        layer.pools.states.import_state(layer.handles[n].slot(), 0, h,
                                        {state.data() + (n * kHeads + h) * kDim * kDim, kDim, kDim});
    if (!with_conv) return;
    const char* names[] = {"initial_conv_state_q", "initial_conv_state_k", "initial_conv_state_v"};
    for (size_t s = 0; s < 3; ++s) {
      const Floats conv = floats(file->require(names[s]));  // [N, channels, 3]
      for (size_t n = 0; n < sequences(); ++n)
        for (size_t i = 0; i < kHidden; ++i)
          for (size_t r = 0; r < 3; ++r)
            layer.pools.states.conv_tail(layer.handles[n].slot(), 0)[r][s * kHidden + i] = conv[(n * kHidden + i) * 3 + r];
    }
  }

  Floats final_states(Layer& layer) const {
    Floats out(sequences() * kHeads * kDim * kDim);
    for (size_t n = 0; n < sequences(); ++n)
      for (size_t h = 0; h < kHeads; ++h)
        layer.pools.states.export_state(layer.handles[n].slot(), 0, h,
                                        {out.data() + (n * kHeads + h) * kDim * kDim, kDim, kDim});
    return out;
  }

  Floats final_conv(Layer& layer, size_t stream) const {
    Floats out;
    for (size_t n = 0; n < sequences(); ++n)
      for (size_t i = 0; i < kHidden; ++i)
        for (size_t r = 0; r < 3; ++r)
          out.push_back(layer.pools.states.conv_tail(layer.handles[n].slot(), 0)[r][stream * kHidden + i]);
    return out;
  }

  std::shared_ptr<const SafetensorsFile> file;
  Floats x;
  std::vector<size_t> cu_seqlens;
};

const std::vector<std::string> kCases = {"01_single_T1",
                                         "02_single_T8",
                                         "03_single_T64",
                                         "04_single_T65",
                                         "05_single_T128",
                                         "06_single_T256",
                                         "07_single_T1024",
                                         "08_varlen_balanced_4x32",
                                         "09_varlen_unbalanced_5_17_1_41",
                                         "10_varlen_single_T128",
                                         "11_T128_initstate",
                                         "12_varlen_initstate",
                                         "13_strong_decay_T192",
                                         "14_heavy_tail_varlen_initstate"};

// (case, mode, instruction set)
class GoldenKda : public ::testing::TestWithParam<std::tuple<std::string, ForwardMode, std::string>> {
 protected:
  void SetUp() override {
    ISA_OR_SKIP(isa());
    GOLDEN_OR_SKIP(path, "kda/" + name() + ".safetensors");
    GOLDEN_OR_SKIP(base, "kda/weights.safetensors");
    std::shared_ptr<const TensorStore> above;
    if (name().starts_with("13") || name().starts_with("14")) {
      GOLDEN_OR_SKIP(replacement, "kda/weights_case" + name().substr(0, 2) + "_override.safetensors");
      above = SafetensorsFile::open(replacement);
    }
    weights_ = std::make_unique<Overlay>(SafetensorsFile::open(base), above);
    case_.emplace(path);
  }

  std::string name() const { return std::get<0>(GetParam()); }
  ForwardMode mode() const { return std::get<1>(GetParam()); }
  std::string isa() const { return std::get<2>(GetParam()); }
  double tolerance() const { return name().starts_with("14") ? 5e-5 : 5e-6; }

  Layer layer(ActivationType activations = ActivationType::f32) const {
    return {*weights_, layer_config(kHidden, kHeads, kDim), case_->sequences(), activations, testing::kernels_for(isa())};
  }

  std::unique_ptr<Overlay> weights_;
  std::optional<Case> case_;
};

std::string name_of(const ::testing::TestParamInfo<GoldenKda::ParamType>& test) {
  const auto& [name, mode, isa] = test.param;
  return name + "_" + std::string(to_string(mode)) + "_" + testing::name_in_tests(isa);
}
const auto kModes = ::testing::Values(ForwardMode::Extend, ForwardMode::Decode);
const auto kIsas = ::testing::ValuesIn(testing::isas());

INSTANTIATE_TEST_SUITE_P(Cases, GoldenKda, ::testing::Combine(::testing::ValuesIn(kCases), kModes, kIsas), name_of);

TEST_P(GoldenKda, OutputAndStatesAreTheReferences) {
  const Case& c = *case_;
  Layer attention = layer();
  c.set_initial_states(attention, true);
  Recorder recorder;
  EXPECT_CLOSE_TO_MAX(attention.run(c.x, kHidden, c.cu_seqlens, mode(), 0, &recorder), floats(c.file->require("out_fp32")),
                      tolerance());
  EXPECT_CLOSE_TO_MAX(c.final_states(attention), floats(c.file->require("final_recurrent_state")), tolerance());
  const char* conv[] = {"final_conv_state_q", "final_conv_state_k", "final_conv_state_v"};
  for (size_t s = 0; s < 3; ++s)
    EXPECT_CLOSE_TO_MAX(c.final_conv(attention, s), floats(c.file->require(conv[s])), tolerance()) << conv[s];

  const std::map<std::string, Value> mid = {{"mid.q", Value::AttentionQueries}, {"mid.k", Value::AttentionKeys},
                                            {"mid.v", Value::AttentionValues},  {"mid.g", Value::Decays},
                                            {"mid.beta", Value::Betas},         {"mid.core_out", Value::AttentionHeadOutputs}};
  for (const auto& [theirs, ours] : mid) {
    if (const auto t = c.file->find(theirs)) {
      EXPECT_CLOSE_TO_MAX(recorder.values(ours, 0), floats(*t), tolerance()) << theirs;
    }
  }
}

TEST_P(GoldenKda, Bf16ActivationsStayWithinTheirTolerance) {
  const Case& c = *case_;
  Layer attention = layer(ActivationType::bf16);
  c.set_initial_states(attention, true);
  EXPECT_CLOSE_TO_MAX(attention.run(c.x, kHidden, c.cu_seqlens, mode()), floats(c.file->require("out_fp32")), 1.5e-2);
}

// The cases for which the reference was run without the convolutions' past too.
class GoldenKdaWithoutConvolutionsPast : public GoldenKda {};
INSTANTIATE_TEST_SUITE_P(Cases, GoldenKdaWithoutConvolutionsPast,
                         ::testing::Combine(::testing::Values("11_T128_initstate", "12_varlen_initstate"), kModes, kIsas),
                         name_of);

TEST_P(GoldenKdaWithoutConvolutionsPast, TheReferenceDiffersAsItShould) {
  const Case& c = *case_;
  Layer attention = layer();
  c.set_initial_states(attention, false);
  EXPECT_CLOSE_TO_MAX(attention.run(c.x, kHidden, c.cu_seqlens, mode()), floats(c.file->require("out_fp32_zero_conv_state")),
                      tolerance());
  EXPECT_CLOSE_TO_MAX(c.final_states(attention), floats(c.file->require("final_recurrent_state_zero_conv_state")), tolerance());
}

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
      Layer layer(weights, layer_config(hidden, heads, d), 1);
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
    Layer layer(weights, layer_config(64, 2, 32), 1);
    return layer.run(x, 64, {0, 150}, ForwardMode::Extend, start);
  };
  const Floats at_zero = from(0);
  for (size_t start : {size_t{64}, size_t{6400}, size_t{1} << 30}) EXPECT_BYTES_EQ(from(start), at_zero) << start;
}

}  // namespace
}  // namespace kilin

// A whole layer of each of the four kinds, and the kinds of all layers of the published model.
#include "model/kimi_decoder_layer.h"

#include <gtest/gtest.h>

#include <set>

#include "core/reservation.h"
#include "model/kda_backend.h"
#include "model/kimi_linear_for_causal_lm.h"
#include "support/compare.h"
#include "support/configs.h"
#include "support/layer_bench.h"
#include "support/naive_layers.h"

namespace kilin {
namespace {

using testing::MadeUpWeights;
using Floats = std::vector<float>;

constexpr double kTolerance = 5e-6;
constexpr size_t kHidden = 40, kKinds = 4;

// KDA dense, KDA MoE, MLA dense, MLA MoE.
ModelConfig four_kinds() {
  ModelConfig c;
  c.hidden_size = kHidden;
  c.num_hidden_layers = kKinds;
  c.intermediate_size = 50;
  c.rms_norm_eps = 1e-5;
  c.num_attention_heads = 3, c.kv_lora_rank = 33, c.qk_nope_head_dim = 5, c.qk_rope_head_dim = 7, c.v_head_dim = 9;
  c.kda_num_heads = 2, c.kda_head_dim = 20, c.short_conv_kernel_size = 4;
  c.num_experts = 6, c.num_experts_per_token = 2, c.num_shared_experts = 1, c.moe_intermediate_size = 11;
  c.moe_renormalize = true;
  c.routed_scaling_factor = 2.446;
  c.num_expert_group = c.topk_group = 1;
  c.attention_kinds = {AttentionKind::Kda, AttentionKind::Kda, AttentionKind::Mla, AttentionKind::Mla};
  c.feed_forward_kinds = {FeedForwardKind::Dense, FeedForwardKind::Moe, FeedForwardKind::Dense, FeedForwardKind::Moe};
  return c;
}

// One layer and its memory, which moves on from call to call.
class Layer {
 public:
  Layer(size_t layer, size_t sequences, size_t threads = 2) : bench_(config_, sequences, 150, {.threads = threads}) {
    testing::add_decoder_layer(weights_, config_, layer);
    WeightSource source = testing::source_of(weights_);
    layer_.emplace(KimiDecoderLayer::load(source, config_, layer, 0));
  }
  Floats run(const Floats& x, const std::vector<size_t>& cu_seqlens, ForwardMode mode, size_t start = 0) {
    return bench_.run(x, cu_seqlens, bench_.spans(mode, start),
                      [&](ExecContext& ctx, const ForwardBatch& batch, MatView<const float> in, MatView<float> stream) {
                        for (size_t r = 0; r < in.rows(); ++r) std::ranges::copy(in[r], stream.row(r));
                        layer_->forward(ctx, backend_, batch, stream);
                      });
  }
  const MadeUpWeights& weights() const { return weights_; }

 private:
  ModelConfig config_ = four_kinds();
  MadeUpWeights weights_;
  testing::LayerBench bench_;
  KdaBackend backend_;
  std::optional<KimiDecoderLayer> layer_;
};

Floats rows(const Floats& x, size_t begin, size_t end) {
  return {x.begin() + static_cast<ptrdiff_t>(begin * kHidden), x.begin() + static_cast<ptrdiff_t>(end * kHidden)};
}

TEST(KimiDecoderLayer, OfEachKindAgreesWithALoopInFp64InBothModes) {
  for (size_t kind = 0; kind < kKinds; ++kind)
    for (size_t tokens : {1, 90})
      for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode}) {
        Layer layer(kind, 1);
        const Floats x = testing::made_up_values(tokens * kHidden, kind);
        const testing::Doubles truth = testing::naive_decoder_layer(layer.weights(), four_kinds(), kind, {x.begin(), x.end()});
        EXPECT_CLOSE_TO_MAX(layer.run(x, {0, tokens}, mode), testing::rounded(truth), kTolerance)
            << "kind " << kind << ", " << to_string(mode) << ", tokens " << tokens;
      }
}

TEST(KimiDecoderLayer, GivesTheSameBytesAloneOrTogetherOnAnyNumberOfThreads) {
  const Floats x = testing::made_up_values(130 * kHidden, 9);
  for (size_t kind = 0; kind < kKinds; ++kind)
    for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode}) {
      Layer first(kind, 1, 1), second(kind, 1, 1);
      Floats alone = first.run(rows(x, 0, 100), {0, 100}, mode);
      const Floats rest = second.run(rows(x, 100, 130), {0, 30}, mode);
      alone.insert(alone.end(), rest.begin(), rest.end());
      for (size_t threads : {1, 2, 5}) {
        Layer layer(kind, 2, threads);
        EXPECT_BYTES_EQ(layer.run(x, {0, 100, 130}, mode), alone) << "kind " << kind << ", threads " << threads;
      }
    }
}

TEST(KimiDecoderLayer, ACutOfAPromptAtAMultipleOf64ChangesNoByte) {
  const Floats x = testing::made_up_values(150 * kHidden, 10);
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const Floats whole = Layer(kind, 1).run(x, {0, 150}, ForwardMode::Extend);
    for (size_t cut : {64, 128}) {
      Layer layer(kind, 1);
      Floats out = layer.run(rows(x, 0, cut), {0, cut}, ForwardMode::Extend);
      const Floats rest = layer.run(rows(x, cut, 150), {0, 150 - cut}, ForwardMode::Extend, cut);
      out.insert(out.end(), rest.begin(), rest.end());
      EXPECT_BYTES_EQ(out, whole) << "kind " << kind << " cut at " << cut;
    }
  }
}

// Every tensor of a configuration, all the same zeros: address space that nobody touches.
class ZeroStore final : public TensorStore {
 public:
  explicit ZeroStore(const ModelConfig& config) : tensors_(expected_tensors(config)) {
    size_t most = 0;
    for (const ExpectedTensor& t : tensors_) {
      names_.push_back(t.name);
      most = std::max(most, t.shape.elements() * size_of(t.published_dtype()));
    }
    std::ranges::sort(names_);
    zeros_ = Reservation(most, "zeros");
  }
  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return source_; }
  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto at = std::ranges::find(tensors_, name, &ExpectedTensor::name);
    if (at == tensors_.end()) return std::nullopt;
    const DType type = at->published_dtype();
    return StoredTensor{at->name, type, at->shape, {zeros_.data(), at->shape.elements() * size_of(type)}, source_};
  }

 private:
  std::vector<ExpectedTensor> tensors_;
  std::vector<std::string> names_;
  std::string source_ = "zeros";
  Reservation zeros_;
};

// Which layers show values that only one kind has.
class Kinds final : public Taps {
 public:
  void at(const Site& site, TensorView) override { shown_[site.value].insert(site.layer + 1); }
  const std::set<int>& layers(Value value) { return shown_[value]; }

 private:
  std::map<Value, std::set<int>> shown_;
};

// The published widths, 27 layers and all; few experts, one chosen, so that the pass is short.
TEST(KimiDecoderLayer, ThePublishedModelsTwentySevenLayersAreOfThePublishedKinds) {
  Json json = testing::published_config();
  json["num_experts"] = 2;
  json["num_experts_per_token"] = 1;
  const ModelConfig config = ModelConfig::parse(json.dump(), "config.json");
  WeightSource source = WeightSource::open(std::make_shared<ZeroStore>(config), config);
  const KimiLinearForCausalLM model = KimiLinearForCausalLM::load(source, config);
  MemoryPools pools = {RecurrentStatePool(model.state_dimensions(), 1), LatentKvPool(model.latent_dimensions(KvType::f32), 1)};
  EXPECT_EQ(pools.states.dimensions().layers, 20u);
  EXPECT_EQ(pools.latents.dimensions().layers, 7u);
  const StateHandle state = pools.states.acquire();
  PageTable pages(pools.latents);
  pages.grow(1);
  const SequenceSpan span = {.mode = ForwardMode::Extend, .state_slot = state.slot(), .pages = pages.pages()};
  const int32_t id = 7;
  const size_t cu_seqlens[] = {0, 1};
  ThreadPool threads(2);
  const KernelTable kernels = select_kernels(CpuInfo::detect(), KernelChoice::from_environment());
  LocalCommunicator communicator;
  Workspace workspace(size_t{1} << 32);
  Kinds kinds;
  ExecContext ctx = {threads, kernels, communicator, workspace, &kinds};
  model.forward(ctx, {{&id, 1}, cu_seqlens, {&span, 1}, {}, &pools}, MatView<float>(nullptr, 0, config.hidden_size));

  const std::set<int> mla = {4, 8, 12, 16, 20, 24, 27};  // 1-based, as the published file counts
  std::set<int> kda, moe;
  for (int layer = 1; layer <= 27; ++layer) {
    if (!mla.contains(layer)) kda.insert(layer);
    if (layer > 1) moe.insert(layer);
  }
  EXPECT_EQ(kinds.layers(Value::Decays), kda);
  EXPECT_EQ(kinds.layers(Value::KvALayernorm), mla);
  EXPECT_EQ(kinds.layers(Value::RouterLogits), moe);
  EXPECT_EQ(kinds.layers(Value::GateProj), std::set<int>{1});
}

}  // namespace
}  // namespace kilin

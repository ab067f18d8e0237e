// The whole model against the reference: golden/tiny (Hugging Face's own code in fp64) and models/tiny.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/npy.h"
#include "core/json.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/model_runner.h"

namespace kilin {
namespace {

using testing::ModelRunner;
using testing::RunnerOptions;

std::vector<float> floats(const Tensor& t) { return {t.as<const float>(), t.as<const float>() + t.elements()}; }
std::vector<int32_t> ints(const Tensor& t) { return {t.as<const int32_t>(), t.as<const int32_t>() + t.elements()}; }

const std::vector<std::string> kPrompts = {"T001", "T002", "T003", "T008", "T063", "T064", "T065", "T130", "T300"};

class GoldenPrompt : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Tiny, GoldenPrompt, ::testing::ValuesIn(kPrompts), [](const auto& test) { return test.param; });

TEST_P(GoldenPrompt, LogitsAreTheReferences) {
  GOLDEN_OR_SKIP(folder, "tiny/" + GetParam());
  GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
  ModelRunner runner(checkpoint);
  EXPECT_CLOSE_TO_MAX(runner.prefill(ints(read_npy(folder / "ids.npy"))), floats(read_npy(folder / "logits.npy")), 1e-5);
}

TEST_P(GoldenPrompt, GreedyTokensAreTheReferences) {
  GOLDEN_OR_SKIP(folder, "tiny/" + GetParam());
  GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
  ModelRunner runner(checkpoint);
  const size_t vocab = runner.config().vocab_size;
  auto sequence = runner.fresh();
  std::vector<float> logits = runner.run({{&sequence, ForwardMode::Extend, ints(read_npy(folder / "ids.npy"))}});
  std::vector<int32_t> greedy;
  for (size_t i = 0; i < 32; ++i) {
    const auto row = std::span(logits).last(vocab);
    greedy.push_back(static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
    logits = runner.run({{&sequence, ForwardMode::Decode, {greedy.back()}}});
  }
  EXPECT_EQ(greedy, ints(read_npy(folder / "greedy_ids.npy")));
}

TEST(GoldenTiny, ExpertWeightsDoNotCarryTheSelectionBias) {
  GOLDEN_OR_SKIP(wrong, "tiny/remote_code_biased_weights_T065_logits.npy");
  GOLDEN_OR_SKIP(folder, "tiny/T065");
  GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
  ModelRunner runner(checkpoint);
  const double error =
      testing::error_relative_to_max(runner.prefill(ints(read_npy(folder / "ids.npy"))), floats(read_npy(wrong)));
  EXPECT_GT(error, 0.1);
}

TEST(GoldenTiny, Bf16ActivationsStayNearTheReference) {
  GOLDEN_OR_SKIP(folder, "tiny/T008");
  GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
  ModelRunner runner(checkpoint, {.kv_type = KvType::bf16, .activations = ActivationType::bf16});
  const std::vector<float> logits = runner.prefill(ints(read_npy(folder / "ids.npy")));
  const std::vector<float> truth = floats(read_npy(folder / "logits.npy"));
  EXPECT_CLOSE_TO_MAX(logits, truth, 1.5e-2);
  EXPECT_GT(testing::error_relative_to_max(logits, truth), 1e-4);  // it does round
}

// Records copies of what the forward pass shows.
class Recorder final : public Taps {
 public:
  explicit Recorder(const ModelConfig& config) : config_(config) {}
  void at(const Site& site, TensorView v) override {
    const bool kda = site.layer >= 0 && config_.is_kda(static_cast<size_t>(site.layer));
    auto& out = values[to_string(site, kda ? "linear_attn" : "self_attn")];
    for (size_t r = 0; r < v.shape()[0]; ++r)
      for (size_t c = 0; c < v.shape()[1]; ++c)
        out.push_back(v.dtype() == DType::i32 ? static_cast<float>(v.as<int32_t>()[r * v.stride(0) + c])
                                              : v.as<float>()[r * v.stride(0) + c]);
  }
  std::map<std::string, std::vector<float>> values;

 private:
  const ModelConfig& config_;
};

TEST(GoldenTiny, EveryIntermediateIsTheReferences) {
  GOLDEN_OR_SKIP(trace_file, "tiny/trace_T065.safetensors");
  GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
  const auto trace = SafetensorsFile::open(trace_file);
  const auto truth = [&](const std::string& name) {
    const StoredTensor t = trace->require(name);
    std::vector<float> out(t.elements());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = t.dtype == DType::i32 ? static_cast<float>(reinterpret_cast<const int32_t*>(t.bytes.data())[i])
                                     : reinterpret_cast<const float*>(t.bytes.data())[i];
    return out;
  };
  ModelRunner runner(checkpoint);
  Recorder recorder(runner.config());
  std::vector<int32_t> ids;
  for (float id : truth("ids")) ids.push_back(static_cast<int32_t>(id));
  auto sequence = runner.fresh();
  EXPECT_CLOSE_TO_MAX(runner.run({{&sequence, ForwardMode::Extend, ids}}, &recorder), truth("logits"), 1e-5);

  const ModelConfig& c = runner.config();
  const std::map<std::string, std::string> of_layer = {
      {"layer_output", "out"}, {"attention_output", "attn_out"}, {"mlp.input", "mlp_norm"}, {"mlp_output", "mlp_out"}};
  const std::map<std::string, std::string> of_moe = {{"mlp.router_logits", "router_logits"},
                                                     {"mlp.expert_indices", "router_ids"},
                                                     {"mlp.expert_weights", "router_weights"},
                                                     {"mlp.routed_output", "routed_out"},
                                                     {"mlp.shared_expert_output", "shared_out"}};
  const std::map<std::string, std::string> of_kda = {{"linear_attn.input", "attn_norm"},
                                                     {"linear_attn.attention_queries", "kda.q"},
                                                     {"linear_attn.attention_keys", "kda.k"},
                                                     {"linear_attn.attention_values", "kda.v"},
                                                     {"linear_attn.decays", "kda.g"},
                                                     {"linear_attn.betas", "kda.beta"},
                                                     {"linear_attn.attention_head_outputs", "kda.o"}};
  const std::map<std::string, std::string> of_mla = {{"self_attn.input", "attn_norm"}};
  EXPECT_CLOSE_TO_MAX(recorder.values.at("token_embeddings"), truth("embed"), 1e-5);
  EXPECT_CLOSE_TO_MAX(recorder.values.at("norm"), truth("final_norm"), 1e-5);
  size_t kda = 0, mla = 0;
  for (size_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const auto compare = [&](const std::map<std::string, std::string>& names) {
      for (const auto& [ours, theirs] : names)
        EXPECT_CLOSE_TO_MAX(recorder.values.at(prefix + ours), truth(prefix + theirs), 1e-5) << prefix << ours;
    };
    compare(of_layer);
    if (c.is_moe(layer)) compare(of_moe);
    compare(c.is_kda(layer) ? of_kda : of_mla);
    if (c.is_kda(layer)) {
      const size_t d = c.kda_head_dim, width = c.kda_width();
      std::vector<float> state(c.kda_num_heads * d * d), tail(3 * width * 3);
      for (size_t h = 0; h < c.kda_num_heads; ++h)
        runner.pools().states.export_state(sequence.state.slot(), kda, h, {state.data() + h * d * d, d, d});
      EXPECT_CLOSE_TO_MAX(state, truth(prefix + "state.recurrent"), 1e-5) << prefix;
      const MatView<float> rows = runner.pools().states.conv_tail(sequence.state.slot(), kda);
      const char* names[] = {"state.conv_q", "state.conv_k", "state.conv_v"};
      for (size_t s = 0; s < 3; ++s) {
        std::vector<float> ours;  // [channels, 3]
        for (size_t i = 0; i < width; ++i)
          for (size_t r = 0; r < 3; ++r) ours.push_back(rows[r][s * width + i]);
        EXPECT_CLOSE_TO_MAX(ours, truth(prefix + names[s]), 1e-5) << prefix << names[s];
      }
      ++kda;
    } else {
      std::vector<float> latents(65 * c.mla_latent_width()), ours_c, ours_r;
      runner.pools().latents.read(mla++, sequence.pages.pages(), 0, {latents.data(), 65, c.mla_latent_width()});
      for (size_t t = 0; t < 65; ++t) {
        const auto row = latents.begin() + static_cast<std::ptrdiff_t>(t * c.mla_latent_width());
        ours_c.insert(ours_c.end(), row, row + static_cast<std::ptrdiff_t>(c.kv_lora_rank));
        ours_r.insert(ours_r.end(), row + static_cast<std::ptrdiff_t>(c.kv_lora_rank),
                      row + static_cast<std::ptrdiff_t>(c.mla_latent_width()));
      }
      EXPECT_CLOSE_TO_MAX(ours_c, truth(prefix + "state.kv_latent"), 1e-5) << prefix;
      EXPECT_CLOSE_TO_MAX(ours_r, truth(prefix + "state.k_rope"), 1e-5) << prefix;
    }
  }
}

class TinyModel : public ::testing::Test {
 protected:
  const std::filesystem::path folder_ = testing::in_repository("models/tiny");
};

TEST_F(TinyModel, GreedyContinuationsAreTheReferences) {
  const Json expected = read_json(folder_ / "expected.json");
  ModelRunner runner(folder_);
  const size_t vocab = runner.config().vocab_size;
  size_t prompts = 0;
  for (const Json& c : expected.at("greedy")) {
    auto sequence = runner.fresh();
    std::vector<float> logits = runner.run({{&sequence, ForwardMode::Extend, c.at("prompt_ids").get<std::vector<int32_t>>()}});
    std::vector<int32_t> greedy;
    const auto truth = c.at("ids").get<std::vector<int32_t>>();
    for (size_t i = 0; i < truth.size(); ++i) {
      const auto row = std::span(logits).last(vocab);
      greedy.push_back(static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
      logits = runner.run({{&sequence, ForwardMode::Decode, {greedy.back()}}});
    }
    EXPECT_EQ(greedy, truth) << c.at("prompt");
    ++prompts;
  }
  EXPECT_EQ(prompts, 6u);
}

}  // namespace
}  // namespace kilin

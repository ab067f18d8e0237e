// The whole model against the reference: golden/tiny (Hugging Face's own code in fp64) and models/tiny.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/npy.h"
#include "core/json.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/isas.h"
#include "support/model_runner.h"
#include "support/recorder.h"

namespace kilin {
namespace {

using testing::ModelRunner;
using testing::Recorder;

std::vector<float> floats(const Tensor& t) { return {t.as<const float>(), t.as<const float>() + t.elements()}; }
std::vector<int32_t> ints(const Tensor& t) { return {t.as<const int32_t>(), t.as<const int32_t>() + t.elements()}; }

// The next `n` tokens of a sequence, always the likeliest.
std::vector<int32_t> greedy(ModelRunner& runner, testing::TestSequence& sequence, std::vector<float> logits, size_t n) {
  std::vector<int32_t> ids;
  while (ids.size() < n) {
    const auto row = std::span(logits).last(runner.config().vocab_size);
    ids.push_back(static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
    logits = runner.run({{&sequence, ForwardMode::Decode, {ids.back()}}});
  }
  return ids;
}

const std::vector<std::string> kPrompts = {"T001", "T002", "T003", "T008", "T063", "T064", "T065", "T130", "T300"};

const auto kIsas = ::testing::ValuesIn(testing::isas());
const auto name_of = [](const auto& test) {
  return testing::name_in_tests(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
};

class GoldenPrompt : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static std::string isa() { return std::get<0>(GetParam()); }
  static std::string prompt() { return "tiny/" + std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Tiny, GoldenPrompt, ::testing::Combine(kIsas, ::testing::ValuesIn(kPrompts)), name_of);

TEST_P(GoldenPrompt, LogitsAreTheReferences) {
  ISA_OR_SKIP(isa());
  GOLDEN_OR_SKIP(folder, prompt());
  GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
  ModelRunner runner(checkpoint, {.kernels = testing::kernels_for(isa())});
  EXPECT_CLOSE_TO_MAX(runner.prefill(ints(read_npy(folder / "ids.npy"))), floats(read_npy(folder / "logits.npy")), 1e-5);
}

TEST_P(GoldenPrompt, GreedyTokensAreTheReferences) {
  ISA_OR_SKIP(isa());
  GOLDEN_OR_SKIP(folder, prompt());
  GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
  ModelRunner runner(checkpoint, {.kernels = testing::kernels_for(isa())});
  auto sequence = runner.fresh();
  const std::vector<float> logits = runner.run({{&sequence, ForwardMode::Extend, ints(read_npy(folder / "ids.npy"))}});
  EXPECT_EQ(greedy(runner, sequence, logits, 32), ints(read_npy(folder / "greedy_ids.npy")));
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

class GoldenTrace : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Tiny, GoldenTrace, kIsas, [](const auto& test) { return testing::name_in_tests(test.param); });

TEST_P(GoldenTrace, EveryIntermediateIsTheReferences) {
  ISA_OR_SKIP(GetParam());
  GOLDEN_OR_SKIP(trace_file, "tiny/trace_T065.safetensors");
  GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
  const auto trace = SafetensorsFile::open(trace_file);
  const auto truth = [&](const std::string& name) {
    const StoredTensor t = trace->require(name);
    std::vector<float> out(t.elements());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = t.format == DType::i32 ? static_cast<float>(reinterpret_cast<const int32_t*>(t.bytes.data())[i])
                                      : reinterpret_cast<const float*>(t.bytes.data())[i];
    return out;
  };
  ModelRunner runner(checkpoint, {.kernels = testing::kernels_for(GetParam())});
  Recorder recorder;
  std::vector<int32_t> ids;
  for (float id : truth("ids")) ids.push_back(static_cast<int32_t>(id));
  auto sequence = runner.fresh();
  EXPECT_CLOSE_TO_MAX(runner.run({{&sequence, ForwardMode::Extend, ids}}, &recorder), truth("logits"), 1e-5);

  const ModelConfig& c = runner.config();
  using Names = std::map<Value, std::string>;
  const Names of_layer = {{Value::AttentionInput, "attn_norm"},
                          {Value::AttentionOutput, "attn_out"},
                          {Value::MlpInput, "mlp_norm"},
                          {Value::MlpOutput, "mlp_out"},
                          {Value::LayerOutput, "out"}};
  const Names of_moe = {{Value::RouterLogits, "router_logits"},
                        {Value::ExpertIndices, "router_ids"},
                        {Value::ExpertWeights, "router_weights"},
                        {Value::RoutedOutput, "routed_out"},
                        {Value::SharedExpertOutput, "shared_out"}};
  const Names of_kda = {{Value::AttentionQueries, "kda.q"}, {Value::AttentionKeys, "kda.k"},
                        {Value::AttentionValues, "kda.v"},  {Value::Decays, "kda.g"},
                        {Value::Betas, "kda.beta"},         {Value::AttentionHeadOutputs, "kda.o"}};
  EXPECT_CLOSE_TO_MAX(recorder.values(Value::TokenEmbeddings), truth("embed"), 1e-5);
  EXPECT_CLOSE_TO_MAX(recorder.values(Value::Norm), truth("final_norm"), 1e-5);
  size_t kda = 0, mla = 0;
  for (size_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const auto compare = [&](const Names& names) {
      for (const auto& [ours, theirs] : names)
        EXPECT_CLOSE_TO_MAX(recorder.values(ours, static_cast<int>(layer)), truth(prefix + theirs), 1e-5) << prefix << theirs;
    };
    compare(of_layer);
    if (c.is_moe(layer)) compare(of_moe);
    if (c.is_kda(layer)) {
      compare(of_kda);
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

// Under every instruction set these are the engine's tests.
TEST(TinyModel, GreedyContinuationsAreTheReferences) {
  const auto folder = testing::in_repository("models/tiny");
  const Json expected = read_json(folder / "expected.json");
  ModelRunner runner(folder);
  size_t prompts = 0;
  for (const Json& c : expected.at("greedy")) {
    auto sequence = runner.fresh();
    const std::vector<float> logits =
        runner.run({{&sequence, ForwardMode::Extend, c.at("prompt_ids").get<std::vector<int32_t>>()}});
    const auto truth = c.at("ids").get<std::vector<int32_t>>();
    EXPECT_EQ(greedy(runner, sequence, logits, truth.size()), truth) << c.at("prompt");
    ++prompts;
  }
  EXPECT_EQ(prompts, 6u);
}

}  // namespace
}  // namespace kilin

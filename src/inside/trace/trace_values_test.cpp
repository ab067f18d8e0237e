// Relations between the values of a pass that hold for any weights.
#include <cmath>

#include "support/trace_fixture.h"

namespace kilin {
namespace {

using testing::floats;
using testing::some_ids;

class TraceValues : public testing::TraceTest {
 protected:
  static std::vector<float> sum(const std::vector<const Tensor*>& terms) {
    std::vector<float> total(terms.front()->elements());
    for (const Tensor* term : terms)
      for (size_t i = 0; i < total.size(); ++i) total[i] += term->as<float>()[i];
    return total;
  }
};

TEST_F(TraceValues, InputAndContributionsAreTheOutputOfEveryLayer) {
  const size_t layers = engine().config().num_hidden_layers;
  std::vector<std::string> names;
  for (size_t l = 0; l < layers; ++l)
    for (const char* value : {"layer_input", "attention_output", "mlp_output", "layer_output"})
      names.push_back(fmt::format("layers.{}.{}", l, value));
  const Saved saved = run({{some_ids(70, 1)}}, names);
  for (size_t l = 0; l < layers; ++l) {
    const Tensor* parts[4];
    for (size_t i = 0; i < 4; ++i) parts[i] = &saved.at(names[4 * l + i])->of(0);
    EXPECT_BYTES_EQ(sum({parts[0], parts[1], parts[2]}), floats(*parts[3])) << l;
  }
}

TEST_F(TraceValues, ExpertsAddUpToTheRoutedAndWithTheSharedOneToTheWholeOutput) {
  const Saved s = run({{some_ids(20, 2)}}, {"layers.1.mlp.expert_outputs", "layers.1.mlp.routed_output",
                                            "layers.1.mlp.shared_expert_output", "layers.1.mlp_output"});
  const Tensor &experts = s.at("layers.1.mlp.expert_outputs")->of(0), &routed = s.at("layers.1.mlp.routed_output")->of(0);
  EXPECT_EQ(experts.shape(), (Shape{20, 2, 256}));
  std::vector<float> total(routed.elements());
  for (size_t t = 0; t < 20; ++t)
    for (size_t j = 0; j < 2; ++j)
      for (size_t i = 0; i < 256; ++i) total[t * 256 + i] += experts.as<float>()[(t * 2 + j) * 256 + i];
  EXPECT_BYTES_EQ(total, floats(routed));
  EXPECT_BYTES_EQ(sum({&routed, &s.at("layers.1.mlp.shared_expert_output")->of(0)}),
                  floats(s.at("layers.1.mlp_output")->of(0)));
}

TEST_F(TraceValues, StatesEndInTheOutputStateAndBeginWithNone) {
  const Saved s = run({{some_ids(70, 3)}}, {"layers.2.linear_attn.states", "layers.2.linear_attn.state_output",
                                            "layers.2.linear_attn.state_input", "layers.2.linear_attn.conv_state"});
  const Tensor& states = s.at("layers.2.linear_attn.states")->of(0);
  EXPECT_EQ(states.shape(), (Shape{70, 4, 64, 64}));
  const std::vector<float> all = floats(states), last(all.end() - 4 * 64 * 64, all.end());
  EXPECT_BYTES_EQ(last, floats(s.at("layers.2.linear_attn.state_output")->of(0)));
  EXPECT_FALSE(s.at("layers.2.linear_attn.state_input")->has(0));
  EXPECT_EQ(s.at("layers.2.linear_attn.conv_state")->of(0).shape(), (Shape{3, 3 * 256}));
}

// Computes the recurrence in double from the tapped queries and keys, after their l2 norm. Its results equal the kernel's, so
// the tapped queries, keys, decays and betas are what the kernel really read.
TEST_F(TraceValues, StatesAndHeadOutputsAreThoseOfARecurrenceByHand) {
  constexpr size_t kTokens = 40, kHeads = 4, kDim = 64;
  const auto name = [](const char* value) { return fmt::format("layers.1.linear_attn.{}", value); };
  const Saved s =
      run({{some_ids(kTokens, 4)}}, {name("attention_queries"), name("attention_keys"), name("attention_values"),
                                     name("decays"), name("betas"), name("states"), name("attention_head_outputs")});
  const auto at = [&](const char* value, size_t t, size_t h) {
    return s.at(name(value))->of(0).as<float>() + (t * kHeads + h) * kDim;
  };
  const auto l2_normed = [](const float* x, double scale) {
    double square = 1e-6;
    for (size_t i = 0; i < kDim; ++i) square += double{x[i]} * x[i];
    std::vector<double> y(kDim);
    for (size_t i = 0; i < kDim; ++i) y[i] = x[i] / std::sqrt(square) * scale;
    return y;
  };
  std::vector<float> states(kTokens * kHeads * kDim * kDim), outputs(kTokens * kHeads * kDim);
  for (size_t h = 0; h < kHeads; ++h) {
    std::vector<double> S(kDim * kDim);
    for (size_t t = 0; t < kTokens; ++t) {
      const std::vector<double> q = l2_normed(at("attention_queries", t, h), 1 / std::sqrt(double{kDim}));
      const std::vector<double> k = l2_normed(at("attention_keys", t, h), 1);
      const double beta = s.at(name("betas"))->of(0).as<float>()[t * kHeads + h];
      for (size_t i = 0; i < kDim; ++i)
        for (size_t j = 0; j < kDim; ++j) S[i * kDim + j] *= std::exp(double{at("decays", t, h)[i]});
      for (size_t j = 0; j < kDim; ++j) {
        double error = at("attention_values", t, h)[j], out = 0;
        for (size_t i = 0; i < kDim; ++i) error -= S[i * kDim + j] * k[i];
        for (size_t i = 0; i < kDim; ++i) out += (S[i * kDim + j] += k[i] * beta * error) * q[i];
        outputs[(t * kHeads + h) * kDim + j] = static_cast<float>(out);
      }
      for (size_t i = 0; i < kDim * kDim; ++i) states[(t * kHeads + h) * kDim * kDim + i] = static_cast<float>(S[i]);
    }
  }
  EXPECT_CLOSE_TO_MAX(floats(s.at(name("states"))->of(0)), states, 1e-5);
  EXPECT_CLOSE_TO_MAX(floats(s.at(name("attention_head_outputs"))->of(0)), outputs, 1e-5);
}

TEST_F(TraceValues, AttentionIsThatOfTheShownQueriesKeysAndValues) {
  constexpr size_t kTokens = 30, kHeads = 4, kQuery = 96, kValue = 64;
  const auto name = [](const char* value) { return fmt::format("layers.3.self_attn.{}", value); };
  const Saved s = run({{some_ids(kTokens, 5)}},
                      {name("attention_queries"), name("attention_keys"), name("attention_values"), name("attention_scores"),
                       name("attention_probabilities"), name("attention_head_outputs")});
  const auto at = [&](const char* value, size_t h, size_t row, size_t width) {
    return s.at(name(value))->of(0).as<float>() + (h * kTokens + row) * width;
  };
  std::vector<float> outputs(kTokens * kHeads * kValue);
  for (size_t h = 0; h < kHeads; ++h)
    for (size_t t = 0; t < kTokens; ++t) {
      const float *scores = at("attention_scores", h, t, kTokens), *p = at("attention_probabilities", h, t, kTokens);
      double total = 0;
      for (size_t k = 0; k < kTokens; ++k) {
        if (k > t) {
          EXPECT_EQ(scores[k], -INFINITY);
          EXPECT_EQ(p[k], 0);
          continue;
        }
        double dot = 0;
        for (size_t i = 0; i < kQuery; ++i)
          dot += double{at("attention_queries", h, t, kQuery)[i]} * at("attention_keys", h, k, kQuery)[i];
        EXPECT_NEAR(scores[k], dot / std::sqrt(double{kQuery}), 1e-4);
        total += p[k];
        for (size_t i = 0; i < kValue; ++i)
          outputs[(t * kHeads + h) * kValue + i] += p[k] * at("attention_values", h, k, kValue)[i];
      }
      EXPECT_NEAR(total, 1, 1e-6);
    }
  EXPECT_CLOSE_TO_MAX(floats(s.at(name("attention_head_outputs"))->of(0)), outputs, 1e-5);
}

TEST_F(TraceValues, ProbabilitiesOfTheNextTokenAreThoseOfTheLastRow) {
  const Saved s = run({{some_ids(9, 6)}, {some_ids(4, 7)}}, {"logits", "next_token_probs"});
  for (size_t n = 0; n < 2; ++n) {
    const Tensor& logits = s.at("logits")->of(n);
    const auto row = logits.matrix()[logits.shape()[0] - 1];
    std::vector<float> expected;
    double sum = 0;
    for (float x : row) sum += std::exp(double{x});
    for (float x : row) expected.push_back(static_cast<float>(std::exp(double{x}) / sum));
    EXPECT_CLOSE_TO_MAX(floats(s.at("next_token_probs")->of(n)), expected, 1e-5);
  }
}

TEST_F(TraceValues, WithNothingStagedLogitsAreThePlainOnesByteForByte) {
  const std::vector<int32_t> ids = some_ids(130, 8);
  Trace trace(engine(), {{ids}});
  for (const OfferedValue& o : offered({0, 1, 2, 3, 4, 5}))
    if (!o.staged) trace.save(o.name);
  const auto logits = trace.save("logits");
  trace.run();
  EXPECT_BYTES_EQ(floats(logits->of(0)), plain_logits(ids));
}

TEST_F(TraceValues, StagedLogitsAreThePlainOnesWithinRounding) {
  const std::vector<int32_t> ids = some_ids(130, 8);
  std::vector<std::string> names = {"logits"};
  for (const OfferedValue& o : offered({0, 1, 2, 3, 4, 5})) names.push_back(o.name);
  const std::vector<float> staged = floats(run({{ids}}, names).at("logits")->of(0));
  EXPECT_CLOSE_TO_MAX(staged, plain_logits(ids), 1e-5);
  EXPECT_BYTES_EQ(floats(run({{ids}}, names).at("logits")->of(0)), staged);
}

TEST_F(TraceValues, ABatchGivesEachPromptWhatItGivesAlone) {
  const std::vector<TracePrompt> prompts = {{some_ids(5, 9)}, {some_ids(70, 10)}, {some_ids(1, 11)}};
  std::vector<std::string> names;
  for (const OfferedValue& o : offered({0, 1, 3})) names.push_back(o.name);
  const Saved batch = run(prompts, names);
  for (size_t n = 0; n < prompts.size(); ++n) {
    const Saved alone = run({prompts[n]}, names);
    for (const auto& [name, value] : alone) {
      ASSERT_EQ(value->has(0), batch.at(name)->has(n)) << name;
      if (!value->has(0)) continue;
      EXPECT_EQ(value->of(0).shape(), batch.at(name)->of(n).shape()) << name;
      EXPECT_BYTES_EQ(floats(value->of(0)), floats(batch.at(name)->of(n))) << name << " of prompt " << n;
    }
  }
}

TEST_F(TraceValues, TheCheckpointsNamesGiveTheSameValues) {
  const Saved s = run({{some_ids(6, 12)}}, {"model.layers.0.self_attn.f_b_proj.output", "layers.0.linear_attn.f_b_proj.output",
                                            "model.layers.1.block_sparse_moe.gate.output", "layers.1.mlp.router_logits"});
  EXPECT_BYTES_EQ(floats(s.at("model.layers.0.self_attn.f_b_proj.output")->of(0)),
                  floats(s.at("layers.0.linear_attn.f_b_proj.output")->of(0)));
  EXPECT_BYTES_EQ(floats(s.at("model.layers.1.block_sparse_moe.gate.output")->of(0)),
                  floats(s.at("layers.1.mlp.router_logits")->of(0)));
}

}  // namespace
}  // namespace kilin

// What edits change, and what they leave alone.
#include "support/trace_fixture.h"

namespace kilin {
namespace {

using testing::each;
using testing::floats;
using testing::some_ids;

class TraceEdits : public testing::TraceTest {
 protected:
  // Changes any value of prompt `n` to another one that the model can go on with.
  static TraceEdit change(size_t n, const OfferedValue& o) {
    return [n, o](const TracedValue& value) {
      const Tensor copy = copy_of(value.of(n));
      if (o.site.value == Value::ExpertIndices || o.site.value == Value::InputIds) {
        const int32_t count = o.site.value == Value::InputIds ? 3840 : 8;
        for (size_t i = 0; i < copy.elements(); ++i) copy.as<int32_t>()[i] = (copy.as<int32_t>()[i] + 1) % count;
      } else {
        for (size_t i = 0; i < copy.elements(); ++i) copy.as<float>()[i] *= i % 3 == 0 ? 0.5f : 0.75f;
      }
      copy_elements(copy.view(), value.of(n));
    };
  }
  // With a second step, in which a change of a state shows.
  static std::vector<TracePrompt> prompts() {
    return {{some_ids(6, 21), {3}}, {some_ids(12, 22), {9}}, {some_ids(5, 23), {2}}};
  }
  static size_t step_of(const OfferedValue& o) { return o.site.value == Value::StateInput ? 1 : 0; }
  // The answers to each prompt after both steps, with an edit, and with the same staged layers.
  static std::vector<std::vector<float>> answers_after(const OfferedValue& o, const TraceEdit& edit) {
    Trace trace(engine(), prompts());
    trace.edit(o.name, edit, step_of(o));
    const auto first = trace.save("next_token_probs", 0), second = trace.save("next_token_probs", 1);
    trace.run();
    std::vector<std::vector<float>> all;
    for (size_t n = 0; n < 3; ++n) {
      all.push_back(floats(first->of(n)));
      const std::vector<float> more = floats(second->of(n));
      all.back().insert(all.back().end(), more.begin(), more.end());
    }
    return all;
  }
};

TEST_F(TraceEdits, WritingBackWhatWasReadChangesNoByte) {
  for (const OfferedValue& o : offered({0, 1, 3})) {
    if (!o.writable) continue;
    const auto untouched = answers_after(o, [](const TracedValue&) {});
    const auto written = answers_after(o, [](const TracedValue& value) {
      for (size_t n = 0; n < value.prompts(); ++n) copy_elements(copy_of(value.of(n)).view(), value.of(n));
    });
    for (size_t n = 0; n < 3; ++n) EXPECT_BYTES_EQ(written[n], untouched[n]) << o.name;
  }
}

TEST_F(TraceEdits, AnEditOfOnePromptChangesItsAnswerAndNoOthers) {
  for (const OfferedValue& o : offered({0, 1, 3})) {
    if (!o.writable) continue;
    const auto untouched = answers_after(o, [](const TracedValue&) {});
    const auto edited = answers_after(o, change(1, o));
    EXPECT_BYTES_EQ(edited[0], untouched[0]) << o.name;
    EXPECT_BYTES_EQ(edited[2], untouched[2]) << o.name;
    EXPECT_FALSE(testing::same_bytes_of(edited[1], untouched[1])) << o.name;
  }
}

TEST_F(TraceEdits, OneOnAStepOfGenerationIsThatOfAPrefillAtThatPosition) {
  constexpr size_t kPrompt = 7, kNew = 5, kStep = 3, kRow = kPrompt + kStep - 1;  // step 3 feeds the third new token
  const std::vector<int32_t> prompt = some_ids(kPrompt, 24);
  // The edit changes the row of one token; in [heads, S, K] values that row is in the second axis.
  const auto halve_row = [](TensorView v, size_t axis, size_t row) {
    const Tensor copy = copy_of(v);
    const size_t rows = v.shape()[axis], inner = axis == 0 ? copy.elements() / rows : v.shape()[2];
    for (size_t i = 0; i < copy.elements(); ++i)
      if (i / inner % rows == row) copy.as<float>()[i] *= 0.5f;
    copy_elements(copy.view(), v);
  };
  for (const char* name :
       {"token_embeddings", "layers.0.attention_output", "layers.1.linear_attn.k_proj.output", "layers.1.linear_attn.decays",
        "layers.1.linear_attn.attention_keys", "layers.1.linear_attn.attention_head_outputs", "layers.1.mlp.expert_weights",
        "layers.1.mlp.expert_outputs", "layers.1.mlp_output", "layers.3.self_attn.q_proj.output",
        "layers.3.self_attn.kv_a_layernorm.output", "layers.3.self_attn.attention_queries",
        "layers.3.self_attn.attention_scores", "layers.3.self_attn.attention_probabilities", "layers.4.layer_output", "norm"}) {
    const std::string value_name = name;
    const bool by_head = value_name.starts_with("layers.3.self_attn.attention_");
    Trace generation(engine(), {{prompt}}, {.new_tokens = kNew});
    generation.edit(
        name, [&](const TracedValue& v) { halve_row(v.of(0), by_head ? 1 : 0, 0); }, kStep);
    std::vector<std::shared_ptr<const SavedValue>> rows;
    for (size_t step = kStep; step < kNew; ++step) rows.push_back(generation.save("logits", step));
    std::vector<int32_t> ids = prompt;
    const TraceResult result = generation.run();
    ids.insert(ids.end(), result.output_ids[0].begin(), result.output_ids[0].end() - 1);

    Trace prefill(engine(), {{ids}});
    prefill.edit(name, [&](const TracedValue& v) { halve_row(v.of(0), by_head ? 1 : 0, kRow); });
    const auto logits = prefill.save("logits");
    prefill.run();
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = logits->of(0).matrix()[kRow + i];
      EXPECT_CLOSE_TO_MAX(floats(rows[i]->of(0)), row, 1e-5) << name << ", row " << i;
    }
  }
}

TEST_F(TraceEdits, GenerationWithoutEditsIsTheEngines) {
  const std::vector<int32_t> ids = some_ids(80, 25);
  const auto request = engine().submit(ids, {.max_new_tokens = 12});
  std::vector<int32_t> heard;
  const auto hear = [&](size_t prompt, int32_t id) {
    if (prompt == 1) heard.push_back(id);
  };
  Trace trace(engine(), {{some_ids(3, 26)}, {ids}}, {.new_tokens = 12, .sampling = {}, .on_token = hear});
  const TraceResult result = trace.run();
  EXPECT_EQ(result.output_ids[1], request->wait().ids);
  EXPECT_EQ(heard, result.output_ids[1]);
  EXPECT_EQ(trace.steps(), 12u);
}

TEST_F(TraceEdits, IdsThatAreSetAreWhatTheModelRunsOn) {
  const std::vector<int32_t> ids = some_ids(6, 27), others = some_ids(6, 28);
  Trace trace(engine(), {{ids}});
  trace.edit("input_ids", [&](const TracedValue& v) { std::ranges::copy(others, v.of(0).as<int32_t>()); });
  const auto logits = trace.save("logits");
  trace.run();
  EXPECT_BYTES_EQ(floats(logits->of(0)), plain_logits(others));
}

TEST_F(TraceEdits, AStateCanBeReadSetAndReadBack) {
  const std::string layer = "layers.1.linear_attn.";
  const std::vector<int32_t> ids = some_ids(9, 29);
  Trace donor(engine(), {{some_ids(5, 30)}});
  const auto state = donor.save(layer + "state_output"), tail = donor.save(layer + "conv_state");
  donor.run();
  Trace trace(engine(), {{ids, {4}}});
  trace.edit(
      layer + "state_output", [&](const TracedValue& v) { copy_elements(state->of(0).view(), v.of(0)); }, 0);
  trace.edit(
      layer + "conv_state", [&](const TracedValue& v) { copy_elements(tail->of(0).view(), v.of(0)); }, 0);
  const auto next = trace.save(layer + "state_input", 1);
  const auto fresh = trace.save(layer + "state_input", 0);
  const auto logits = trace.save("logits", 1);
  trace.run();
  EXPECT_BYTES_EQ(floats(next->of(0)), floats(state->of(0)));
  EXPECT_FALSE(fresh->has(0));
  EXPECT_FALSE(testing::same_bytes_of(floats(logits->of(0)), floats(run({{ids, {4}}}, {"logits"}).at("logits")->of(0))));
}

// Prompt A is cut, and its convolution tail is zeroed at the cut. A fresh prompt that holds A's tokens after the cut, and is
// given A's state there, gives the same results.
TEST_F(TraceEdits, AFreshPromptBeginsWithTheStateThatWasWritten) {
  const std::string kda = "layers.0.linear_attn.";
  const std::vector<int32_t> ids = some_ids(90, 34);
  Trace cut(engine(), {{ids, {20}}});
  const auto state = cut.save(kda + "state_output", 0);
  cut.edit(kda + "conv_state", each([](float) { return 0.0f; }), 0);
  const auto expected = cut.save(kda + "attention_head_outputs", 1), end = cut.save(kda + "state_output", 1);
  cut.run();

  Trace fresh(engine(), {{{ids.begin() + 20, ids.end()}}});
  const auto before = fresh.save(kda + "state_input");
  fresh.edit(kda + "state_input", [&](const TracedValue& v) {
    EXPECT_TRUE(v.is_blank());
    EXPECT_EQ(floats(copy_of(v.of(0))), std::vector<float>(4 * 64 * 64));
    copy_elements(state->of(0).view(), v.of(0));
  });
  const auto after = fresh.save(kda + "state_input");
  const auto heads = fresh.save(kda + "attention_head_outputs"), fresh_end = fresh.save(kda + "state_output");
  fresh.run();
  EXPECT_FALSE(before->has(0));
  EXPECT_BYTES_EQ(floats(after->of(0)), floats(state->of(0)));
  EXPECT_CLOSE_TO_MAX(floats(heads->of(0)), floats(expected->of(0)), 1e-6);
  EXPECT_CLOSE_TO_MAX(floats(fresh_end->of(0)), floats(end->of(0)), 1e-6);
}

TEST_F(TraceEdits, AChangedIndexKeepsItsWeightAndOneOutOfRangeIsRefused) {
  const std::string mlp = "layers.1.mlp.";
  Trace trace(engine(), {{some_ids(4, 31)}});
  const auto before = trace.save(mlp + "expert_weights");
  trace.edit(mlp + "expert_indices", [](const TracedValue& v) { v.of(0).as<int32_t>()[0] ^= 1; });
  const auto after = trace.save(mlp + "expert_weights");
  trace.run();
  EXPECT_BYTES_EQ(floats(before->of(0)), floats(after->of(0)));
  EXPECT_BYTES_EQ(floats(before->of(0)), floats(run({{some_ids(4, 31)}}, {mlp + "expert_weights"}).begin()->second->of(0)));

  Trace bad(engine(), {{some_ids(4, 31)}});
  bad.edit(mlp + "expert_indices", [](const TracedValue& v) { v.of(0).as<int32_t>()[0] = 8; });
  bad.save("logits");
  EXPECT_NE(message_of(ErrorCode::InvalidArgument, [&] { bad.run(); }).find("layers.1.mlp.expert_indices: row 0 holds 8"),
            std::string::npos);
}

TEST_F(TraceEdits, OnEveryStepStandInAllOfThem) {
  Trace trace(engine(), {{some_ids(4, 32)}}, {.new_tokens = 4});
  size_t seen = 0;
  trace.edit(
      "layers.2.layer_output", [&](const TracedValue& v) { EXPECT_EQ(v.moment().step, seen++); }, Trace::kEveryStep);
  trace.run();
  EXPECT_EQ(seen, 4u);
}

TEST_F(TraceEdits, ThoseOfOneValueAndItsSavesGoInTheOrderAskedFor) {
  Trace trace(engine(), {{some_ids(4, 33)}});
  const auto before = trace.save("layers.0.layer_output");
  trace.edit("layers.0.layer_output", each([](float x) { return 2 * x; }));
  const auto between = trace.save("layers.0.layer_output");
  trace.edit("layers.0.layer_output", each([](float x) { return x + 1; }));
  const auto after = trace.save("layers.0.layer_output");
  const auto next = trace.save("layers.1.layer_input");
  trace.run();
  std::vector<float> doubled = floats(before->of(0));
  for (float& x : doubled) x *= 2;
  EXPECT_BYTES_EQ(floats(between->of(0)), doubled);
  for (float& x : doubled) x += 1;
  EXPECT_BYTES_EQ(floats(after->of(0)), doubled);
  EXPECT_BYTES_EQ(floats(next->of(0)), doubled);
}

}  // namespace
}  // namespace kilin

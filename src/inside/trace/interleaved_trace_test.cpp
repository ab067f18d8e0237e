#include "inside/trace/interleaved_trace.h"

#include "support/trace_fixture.h"

namespace kilin {
namespace {

using testing::each;
using testing::floats;
using testing::some_ids;

class Interleaved : public testing::TraceTest {
 protected:
  static std::vector<float> read(const TracedValue& value, size_t prompt = 0) { return floats(copy_of(value.of(prompt))); }
};

TEST_F(Interleaved, AReaderGetsWhatAListedTraceKeeps) {
  const std::vector<TracePrompt> prompts = {{some_ids(20, 51)}, {some_ids(5, 52)}};
  // Includes staged values, asked for only when the pass is just before their layer chooses its path.
  const std::vector<std::string> names = {"input_ids",
                                          "layers.0.layer_input",
                                          "layers.1.linear_attn.betas",
                                          "layers.1.linear_attn.states",
                                          "layers.1.mlp.expert_weights",
                                          "layers.1.mlp.expert_outputs",
                                          "layers.3.self_attn.attention_queries",
                                          "layers.3.self_attn.attention_scores",
                                          "layers.3.self_attn.attention_probabilities",
                                          "layers.5.layer_output",
                                          "norm",
                                          "logits",
                                          "next_token_probs"};
  Saved saved = run(prompts, names);
  InterleavedTrace trace(engine(), prompts);
  for (const std::string& name : names) {
    const TracedValue& value = trace.wait_for(name);
    for (size_t n = 0; n < 2; ++n) EXPECT_BYTES_EQ(read(value, n), floats(saved.at(name)->of(n))) << name;
  }
  trace.finish();
}

TEST_F(Interleaved, EveryOfferedValueCanBeReadInTurn) {
  InterleavedTrace trace(engine(), {{some_ids(3, 53)}});
  for (const OfferedValue& o : support(trace.blocks())) {
    const TracedValue& value = trace.wait_for(o.name);
    EXPECT_EQ(value.is_blank(), o.site.value == Value::StateInput) << o.name;
    EXPECT_EQ(&trace.wait_for(o.name), &value) << o.name;  // the pass is still there
  }
}

TEST_F(Interleaved, AWriteIsWhatThePassGoesOnWith) {
  const std::vector<int32_t> ids = some_ids(8, 54);
  Trace listed(engine(), {{ids}});
  listed.edit("layers.3.self_attn.attention_scores", each([](float x) { return 2 * x; }));
  const auto expected = listed.save("logits");
  listed.run();
  InterleavedTrace trace(engine(), {{ids}});
  each([](float x) { return 2 * x; })(trace.wait_for("layers.3.self_attn.attention_scores"));
  EXPECT_BYTES_EQ(read(trace.wait_for("logits")), floats(expected->of(0)));
}

TEST_F(Interleaved, OnePromptsValueCanBePutIntoAnother) {
  const std::vector<TracePrompt> prompts = {{some_ids(6, 55)}, {some_ids(6, 56)}};
  InterleavedTrace trace(engine(), prompts);
  const TracedValue& last = trace.wait_for("layers.5.layer_output");
  copy_elements(last.of(0), last.of(1));
  const TracedValue& logits = trace.wait_for("logits");
  EXPECT_BYTES_EQ(read(logits, 1), read(logits, 0));
  EXPECT_BYTES_EQ(read(logits, 0), plain_logits(prompts[0].ids));
}

TEST_F(Interleaved, AValueThatWasPassedIsOutOfOrderAndThePassStandsWhereItStood) {
  InterleavedTrace trace(engine(), {{some_ids(4, 57)}});
  const TracedValue& held = trace.wait_for("layers.3.self_attn.attention_head_outputs");
  for (const char* name : {"token_embeddings", "layers.2.layer_output", "layers.3.self_attn.attention_scores"}) {
    const std::string message = message_of(ErrorCode::OutOfOrder, [&] { trace.wait_for(name); });
    EXPECT_EQ(message, std::string(name) +
                           " is out of order: the pass has come to layers.3.self_attn.attention_head_outputs; "
                           "read values in the order of the pass");
  }
  message_of(ErrorCode::Unavailable, [&] { trace.wait_for("layers.3.linear_attn.decays"); });
  message_of(ErrorCode::NotFound, [&] { trace.wait_for("layers.3.attention"); });
  message_of(ErrorCode::InvalidArgument, [&] { trace.wait_for("logits", 1); });
  EXPECT_EQ(&trace.wait_for("layers.3.self_attn.attention_head_outputs"), &held);
  EXPECT_EQ(read(trace.wait_for("layers.3.attention_output")).size(), 4u * 256);
  trace.finish();
  message_of(ErrorCode::OutOfOrder, [&] { trace.wait_for("logits"); });
}

TEST_F(Interleaved, AReaderThatGoesReleasesThePass) {
  const std::vector<int32_t> ids = some_ids(30, 58);
  const std::vector<float> before = plain_logits(ids);
  { InterleavedTrace never_read(engine(), {{ids}}); }
  for (const char* name : {"input_ids", "layers.1.linear_attn.state_output", "layers.3.self_attn.attention_keys", "logits"}) {
    InterleavedTrace trace(engine(), {{ids}}, {.new_tokens = 3});
    trace.wait_for(name);
  }
  try {
    InterleavedTrace trace(engine(), {{ids}});
    trace.wait_for("layers.2.layer_input");
    throw std::runtime_error("a reader");
  } catch (const std::runtime_error&) {
  }
  EXPECT_BYTES_EQ(plain_logits(ids), before);
}

TEST_F(Interleaved, WhatThePassThrowsReachesTheReader) {
  const auto break_indices = [](InterleavedTrace& trace) {
    trace.wait_for("layers.1.mlp.expert_indices").of(0).as<int32_t>()[0] = -1;
  };
  InterleavedTrace trace(engine(), {{some_ids(4, 59)}});
  break_indices(trace);
  message_of(ErrorCode::InvalidArgument, [&] { trace.wait_for("logits"); });
  message_of(ErrorCode::OutOfOrder, [&] { trace.wait_for("logits"); });  // it has ended
  InterleavedTrace generation(engine(), {{some_ids(4, 59)}}, {.new_tokens = 3});
  break_indices(generation);
  message_of(ErrorCode::InvalidArgument, [&] { generation.finish(); });
}

// The pass has so many new tokens to make that it is still running at the first poll.
TEST_F(Interleaved, AnInterruptEndsThePassWhereverItIs) {
  const std::vector<int32_t> ids = some_ids(40, 62);
  const std::vector<float> before = plain_logits(ids);
  const auto interrupt = [] { throw std::runtime_error("an interrupt"); };
  InterleavedTrace trace(engine(), {{ids}}, {.new_tokens = 100'000, .sampling = {}, .on_token = {}, .poll = interrupt});
  EXPECT_THROW(trace.wait_for("logits", 99'999), std::runtime_error);
  message_of(ErrorCode::OutOfOrder, [&] { trace.wait_for("logits", 99'999); });  // it has ended
  InterleavedTrace unread(engine(), {{ids}}, {.new_tokens = 100'000, .sampling = {}, .on_token = {}, .poll = interrupt});
  EXPECT_THROW(unread.finish(), std::runtime_error);
  EXPECT_BYTES_EQ(plain_logits(ids), before);
}

TEST_F(Interleaved, GenerationGoesOnToItsEndWhenTheReaderHasFinished) {
  const std::vector<int32_t> ids = some_ids(12, 60);
  const TraceResult expected = Trace(engine(), {{ids}}, {.new_tokens = 6}).run();
  InterleavedTrace unread(engine(), {{ids}}, {.new_tokens = 6});
  EXPECT_EQ(unread.finish().output_ids, expected.output_ids);

  InterleavedTrace trace(engine(), {{ids}}, {.new_tokens = 6});
  EXPECT_EQ(trace.steps(), 6u);
  EXPECT_EQ(read(trace.wait_for("input_ids", 0)).size(), 12u);
  EXPECT_EQ(trace.wait_for("layers.3.self_attn.attention_scores", 2).of(0).shape(), (Shape{4, 1, 14}));
  EXPECT_EQ(static_cast<int32_t>(read(trace.wait_for("input_ids", 4))[0]), expected.output_ids[0][3]);
  message_of(ErrorCode::OutOfOrder, [&] { trace.wait_for("logits", 3); });
  EXPECT_EQ(trace.finish().output_ids, expected.output_ids);
}

TEST_F(Interleaved, ATraceMayRunInsideAnother) {
  const std::vector<int32_t> ids = some_ids(5, 61);
  InterleavedTrace outer(engine(), {{ids}});
  outer.wait_for("layers.2.layer_output");
  EXPECT_BYTES_EQ(floats(run({{ids}}, {"logits"}).at("logits")->of(0)), plain_logits(ids));
  EXPECT_BYTES_EQ(read(outer.wait_for("logits")), plain_logits(ids));
}

}  // namespace
}  // namespace kilin

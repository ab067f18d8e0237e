// What a trace refuses, where it ends, and what it leaves behind.
#include "inside/trace/trace.h"

#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "inside/trace/interleaved_trace.h"
#include "support/trace_fixture.h"

namespace kilin {
namespace {

using testing::floats;
using testing::some_ids;

class TraceDoor : public testing::TraceTest {};

TEST_F(TraceDoor, WhatABlockHasNotIsRefusedBeforeAnythingRuns) {
  Trace trace(engine(), {{{1, 2}}});
  EXPECT_EQ(message_of(ErrorCode::Unavailable, [&] { trace.save("layers[0].self_attn.attention_scores"); }),
            "layers[0].self_attn.attention_scores is not available: block 0 is a KDA block");
  EXPECT_NE(message_of(ErrorCode::NotFound, [&] { trace.save("layers.0.layer_outptu"); }).find("layers.0.layer_output"),
            std::string::npos);
  EXPECT_EQ(message_of(ErrorCode::InvalidArgument, [&] { trace.edit("layers.0.linear_attn.states", {}); }),
            "layers.0.linear_attn.states can't be written: nothing is computed from it");
  EXPECT_EQ(message_of(ErrorCode::InvalidArgument, [&] { trace.save("logits", 1); }),
            "logits: step 1 is not run; expected 0 to 0");
  message_of(ErrorCode::InvalidArgument, [&] { trace.save("logits", Trace::kEveryStep); });
}

TEST_F(TraceDoor, PromptsThatCannotRunAreRefused) {
  const auto refuse = [&](std::vector<TracePrompt> prompts, TraceOptions options = {}) {
    return message_of(ErrorCode::InvalidArgument, [&] { Trace(engine(), std::move(prompts), std::move(options)); });
  };
  refuse({});
  refuse({{{1}}, {{}}});
  refuse({{{1, 4096}}});
  refuse({{{-1}}});
  refuse({{{1, 2}, {2}}});
  refuse({{{1, 2}, {0}}});
  refuse({{{1, 2, 3}, {2, 1}}});
  EXPECT_EQ(refuse({{{1, 2}, {1}}, {{1, 2}}}), "prompt 1 has 0 cuts; expected 1, as prompt 0 has");
  refuse({{{1}}}, {.new_tokens = 1048577});  // the last one is not fed
  refuse({{{1}}}, {.new_tokens = SIZE_MAX});
}

TEST_F(TraceDoor, AValueThatWasNotComeToIsOutOfOrder) {
  Trace trace(engine(), {{{1, 2}}});
  const auto saved = trace.save("norm");
  EXPECT_FALSE(saved->has(0));
  message_of(ErrorCode::OutOfOrder, [&] { saved->of(0); });
  trace.run();
  EXPECT_TRUE(saved->has(0));
  message_of(ErrorCode::OutOfOrder, [&] { saved->of(1); });
}

TEST_F(TraceDoor, ThePassEndsAfterTheLastValueAskedFor) {
  const auto experts_run = [&](const std::string& name) {
    StageProfile profile;
    engine().set_profile(&profile);
    run({{some_ids(3, 41)}}, {name});
    engine().set_profile(nullptr);
    return std::pair(profile[Stage::Experts].cost.experts, profile[Stage::LmHead].cost.weight_bytes);
  };
  EXPECT_EQ(experts_run("layers.0.layer_output"), (std::pair<uint64_t, uint64_t>(0, 0)));
  EXPECT_GT(experts_run("norm").first, 0u);
  EXPECT_EQ(experts_run("norm").second, 0u);
  EXPECT_GT(experts_run("logits").second, 0u);
}

TEST_F(TraceDoor, AThrowingEditLeavesTheEngineAsItWas) {
  const std::vector<int32_t> ids = some_ids(70, 42);
  const std::vector<float> before = plain_logits(ids);
  for (const char* name : {"token_embeddings", "layers.1.linear_attn.decays", "layers.1.mlp.expert_outputs",
                           "layers.3.self_attn.attention_scores", "layers.4.linear_attn.state_output", "logits"}) {
    Trace trace(engine(), {{ids}, {some_ids(3, 43)}});
    const auto saved = trace.save("input_ids");
    trace.edit(name, [](const TracedValue&) { throw std::runtime_error("an edit"); });
    EXPECT_THROW(trace.run(), std::runtime_error) << name;
    EXPECT_EQ(floats(saved->of(0)).size(), 70u);  // values kept until then stay
    EXPECT_BYTES_EQ(plain_logits(ids), before) << name;
  }
  const auto request = engine().submit(ids, {.max_new_tokens = 2});
  EXPECT_EQ(request->wait().finish.reason, FinishReason::Length);
}

TEST_F(TraceDoor, NeitherTheEnginesChunkNorItsSequencesBoundATrace) {
  Engine small(LoadedModel::load(testing::in_repository("models/tiny")),
               {.threads = 1, .prefill_chunk = 64, .max_sequences = 1, .pool_tokens = 64});
  std::vector<TracePrompt> prompts;
  for (uint64_t n = 0; n < 5; ++n) prompts.push_back({some_ids(100 + n, n)});
  Trace trace(small, prompts);
  const auto logits = trace.save("logits");
  trace.run();
  for (size_t n = 0; n < 5; ++n) EXPECT_BYTES_EQ(floats(logits->of(n)), plain_logits(prompts[n].ids));
}

size_t threads() {
  using Entries = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Entries("/proc/self/task"), Entries()));
}

// Bytes that this process holds; nothing under a sanitiser, whose own bookkeeping would be counted and which finds leaks
// itself.
struct Held {
  size_t heap = 0, mapped = 0;
};

Held held() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {};
#else
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return {::mallinfo2().uordblks, pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE))};
#endif
}

TEST_F(TraceDoor, AThousandTracesLeakNothing) {
  const auto trace_once = [&](size_t i) {
    if (i % 4 == 0) {
      InterleavedTrace trace(engine(), {{{1, 2}}});
      trace.wait_for("layers.0.linear_attn.betas");
      return;  // the trace is dropped in the middle of its pass
    }
    Trace trace(engine(), {{{1, 2}}, {{3}}});
    const auto saved = trace.save("layers.0.linear_attn.states");
    if (i % 4 == 1) trace.edit("layers.0.attention_output", [](const TracedValue&) { throw std::runtime_error("an edit"); });
    try {
      trace.run();
    } catch (const std::runtime_error&) {
    }
  };
  for (size_t i = 0; i < 8; ++i) trace_once(i);  // allocations that are made only once
  const size_t running = threads();
  const Held before = held();
  for (size_t i = 0; i < 1000; ++i) trace_once(i);
  EXPECT_EQ(threads(), running);
  const Held after = held();
  EXPECT_LE(after.heap, before.heap + (1u << 16));
  EXPECT_LE(after.mapped, before.mapped + (1u << 24));
}

TEST(QuantisedTrace, GoesTheSameWay) {
  Engine engine(LoadedModel::load(testing::in_repository("models/tiny"), {.quantize = parse_quant_type("q4_0")}),
                {.threads = 2});
  ASSERT_EQ(engine.activations(), ActivationType::int8);
  const std::vector<int32_t> ids = some_ids(30, 44);
  std::vector<float> plain;
  engine.logits(ids, [&](size_t, MatView<const float> rows) {
    for (size_t r = 0; r < rows.rows(); ++r) plain.insert(plain.end(), rows[r].begin(), rows[r].end());
  });
  Trace unstaged(engine, {{ids}});
  for (const OfferedValue& o : support(block_kinds(engine.config())))
    if (!o.staged) unstaged.save(o.name);
  const auto logits = unstaged.save("logits");
  unstaged.run();
  EXPECT_BYTES_EQ(floats(logits->of(0)), plain);

  Trace staged(engine, {{ids}});
  std::map<std::string, std::shared_ptr<const SavedValue>> saved;
  for (const OfferedValue& o : support(block_kinds(engine.config()))) saved[o.name] = staged.save(o.name);
  staged.run();
  const auto sum_of = [&](const std::vector<std::string>& names) {
    std::vector<float> total(saved.at(names[0])->of(0).elements());
    for (const std::string& name : names)
      for (size_t i = 0; i < total.size(); ++i) total[i] += saved.at(name)->of(0).as<float>()[i];
    return total;
  };
  EXPECT_BYTES_EQ(sum_of({"layers.3.layer_input", "layers.3.attention_output", "layers.3.mlp_output"}),
                  floats(saved.at("layers.3.layer_output")->of(0)));
  EXPECT_BYTES_EQ(sum_of({"layers.1.mlp.routed_output", "layers.1.mlp.shared_expert_output"}),
                  floats(saved.at("layers.1.mlp_output")->of(0)));
  // Only the first staged layers see the same rows as the plain pass; in later layers int8 magnifies their rounding.
  Trace one(engine, {{ids}});
  one.save("layers.0.linear_attn.states");
  const auto near = one.save("layers.0.attention_output");
  one.run();
  Trace fused(engine, {{ids}});
  const auto exact = fused.save("layers.0.attention_output");
  fused.run();
  EXPECT_CLOSE_TO_MAX(floats(near->of(0)), floats(exact->of(0)), 2e-2);
}

}  // namespace
}  // namespace kilin

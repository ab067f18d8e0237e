// The engine with its own thread, from many threads at once. Run under ThreadSanitizer by the long tier.
#include "engine/engine_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/error.h"
#include "engine/engine.h"
#include "support/golden.h"
#include "support/ids.h"

namespace kilin {
namespace {

using testing::some_ids;

std::unique_ptr<Engine> tiny_engine(const EngineOptions& options) {
  return std::make_unique<Engine>(LoadedModel::load(testing::in_repository("models/tiny")), options);
}

GenerationParams sampled(size_t new_tokens, uint64_t seed) {
  return {.sampling = {.temperature = 1, .seed = seed}, .max_new_tokens = new_tokens, .stop_ids = std::vector<int32_t>()};
}

std::vector<int32_t> ids_alone(size_t prompt, const GenerationParams& params) {
  const auto e = tiny_engine({.threads = 1});
  return e->submit(some_ids(prompt, prompt), params)->wait().ids;
}

TEST(EngineLoop, ManyThreadsGetTheAnswersThatEachGetsAlone) {
  constexpr size_t kThreads = 6;
  std::vector<std::vector<int32_t>> alone;
  for (size_t i = 0; i < kThreads; ++i) alone.push_back(ids_alone(10 + 9 * i, sampled(8, i)));
  const auto e = tiny_engine({.threads = 2, .prefill_chunk = 64, .max_sequences = 3});
  std::atomic<size_t> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round) {
        std::vector<int32_t> heard;
        const auto request = e->submit(some_ids(10 + 9 * i, 10 + 9 * i), sampled(8, i));
        while (const auto token = request->next_token()) heard.push_back(token->id);
        if (heard != alone[i] || request->answer().ids != alone[i]) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(e->pools().states.free_slots(), 3u);
}

TEST(EngineLoop, HandlesMayBeCancelledAndDestroyedAnyTimeOnAnyThread) {
  const auto e = tiny_engine({.threads = 2, .prefill_chunk = 64, .max_sequences = 2});
  std::atomic<size_t> ended = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (size_t round = 0; round < 12; ++round) {
        auto params = sampled(40, round);
        params.keep_sequence = round % 4 == 3;
        auto request = e->submit(some_ids(1 + 17 * ((round + i) % 5), round), params);
        if (round % 4 == 0) continue;  // nobody waits for it
        if (round % 4 == 1) request->next_token();
        std::thread canceller([&] { request->cancel(); });
        const Finish finish = request->wait().finish;
        if (finish.reason == FinishReason::Cancelled || finish.reason == FinishReason::Length) ++ended;
        canceller.join();
        if (params.keep_sequence) {
          Sequence sequence = request->take_sequence();
          std::thread([sequence = std::move(sequence)]() mutable { sequence = {}; }).join();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 4u * 9);
  EXPECT_EQ(e->submit(some_ids(5, 5), sampled(3, 1))->wait().ids.size(), 3u);
}

TEST(EngineLoop, EveryEventIsToldAndNoneAfterTheEnd) {
  const auto e = tiny_engine({.threads = 2, .max_sequences = 2});
  std::atomic<size_t> told = 0;
  const auto request = e->submit(some_ids(20, 1), sampled(7, 1), {.on_event = [&] { ++told; }});
  request->wait();
  e->submit(some_ids(3, 1), sampled(1, 1))->wait();  // the loop has gone on
  EXPECT_EQ(told, 8u);
}

TEST(EngineLoop, WhoFollowsLateHearsEveryToken) {
  const auto e = tiny_engine({.threads = 2, .max_sequences = 2});
  const auto request = e->submit(some_ids(20, 1), sampled(7, 1));
  while (!request->has_ended()) std::this_thread::yield();
  size_t heard = 0;
  e->follow(*request, {.on_token = [&](const TokenEvent&) { ++heard; }});
  EXPECT_EQ(heard, 7u);
  EXPECT_EQ(e->follow(*request).ids.size(), 7u);
}

TEST(EngineLoop, AnEngineThatGoesAwayEndsWhatRunsAndWaits) {
  std::vector<std::shared_ptr<Request>> requests;
  std::vector<std::thread> waiters;
  std::atomic<size_t> ended = 0;
  {
    const auto e = tiny_engine({.threads = 2, .max_sequences = 2, .pool_tokens = 4000});
    for (size_t i = 0; i < 5; ++i) requests.push_back(e->submit(some_ids(20, i), sampled(1500, i)));
    for (const auto& request : requests)
      waiters.emplace_back([&ended, request] { ended += request->wait().finish.reason == FinishReason::Cancelled ? 1 : 0; });
    requests[0]->next_within(std::chrono::seconds(10));
  }
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(ended, 5u);
}

// Holds the pass in the middle until others have generated.
class WaitingTaps final : public Taps {
 public:
  explicit WaitingTaps(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  void at(const Site& site, TensorView /*values*/) override {
    if (site.value == Value::LayerOutput && site.layer == 2) meanwhile_();
  }

 private:
  std::function<void()> meanwhile_;
};

TEST(EngineLoop, OthersComputeWhileATapOfAStepOutsideItWaits) {
  const auto e = tiny_engine({.threads = 2});
  const std::vector<int32_t> truth = e->submit(some_ids(20, 1), sampled(5, 1))->wait().ids;
  Runner& runner = e->runner();
  const KimiLinearForCausalLM& model = e->loaded().model;
  const auto pools = std::make_shared<MemoryPools>(
      MemoryPools{RecurrentStatePool(model.state_dimensions(), 1), LatentKvPool(model.latent_dimensions(runner.kv_type()), 1)});
  Workspace workspace(step_workspace_bytes(model, {.tokens = 9, .hidden_rows = 9, .threads = e->threads()}));
  Sequence sequence{.pools = pools};
  take_memory(sequence, 9);
  StepBatch batch(9, 1);
  const std::vector<int32_t> ids = some_ids(9, 3);
  batch.add({.sequence = sequence, .mode = ForwardMode::Extend, .ids = ids});
  std::vector<int32_t> meanwhile;
  WaitingTaps taps([&] {
    const FairUnlock others(runner.computing());
    meanwhile = e->submit(some_ids(20, 1), sampled(5, 1))->wait().ids;
  });
  runner.run(batch, *pools, workspace, &taps);
  EXPECT_EQ(meanwhile, truth);
}

// The whole of a step: rows of the stream, the pass, logits.
TEST(Runner, AStepTakesWhatIsPlannedForItToTheByte) {
  const auto e = tiny_engine({.threads = 3});
  const KimiLinearForCausalLM& model = e->loaded().model;
  for (size_t tokens : {1, 63, 64, 65, 200}) {
    for (const bool wants_all : {false, true}) {
      const std::vector<int32_t> ids = some_ids(tokens, 3);
      const auto pools = std::make_shared<MemoryPools>(
          MemoryPools{RecurrentStatePool(model.state_dimensions(), 1),
                      LatentKvPool(model.latent_dimensions(e->runner().kv_type()), LatentKvPool::pages_for(tokens))});
      Sequence sequence{.pools = pools};
      take_memory(sequence, tokens);
      const SamplingParams greedy;
      const LogitsSink sink = [](size_t, MatView<const float>) {};
      StepBatch batch(tokens, 1);
      batch.add({.sequence = sequence,
                 .mode = ForwardMode::Extend,
                 .ids = ids,
                 .draw = &greedy,
                 .history = ids,
                 .logits = wants_all ? &sink : nullptr});
      const uint64_t planned = step_workspace_bytes(
          model, {.tokens = tokens, .hidden_rows = wants_all ? tokens : 1, .threads = 3, .activations = e->activations()});
      Workspace workspace(planned);
      e->runner().run(batch, *pools, workspace);
      EXPECT_EQ(workspace.peak(), planned) << tokens << " tokens, logits of " << (wants_all ? "all" : "the last");
    }
  }
}

}  // namespace
}  // namespace kilin

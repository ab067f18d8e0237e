// A model that takes requests: the door of the library for those who generate.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine_loop.h"
#include "engine/engine_options.h"
#include "engine/memory_plan.h"
#include "loading/loaded_model.h"

namespace kilin {

/// What a request may have beside its prompt and parameters.
struct SubmitOptions {
  /// What earlier requests of this engine left (Request::take_sequence); unset or empty: a fresh one. Taken over even if submit
  /// throws
  std::optional<Sequence> sequence = {};
  LogitsSink prompt_logits = {};        ///< gets the logits of every prompt token, on the thread that runs the step
  std::function<void()> on_event = {};  ///< as RequestChannel's: tells an event loop to look (Request::next_within)
};

/// What is done while a request is followed to its end, on the thread that follows.
struct Follower {
  std::function<void(const TokenEvent&)> on_token = {};
  std::function<void()> between = {};  ///< called after every event, and some times a second: for progress and interrupts
};

/// One model on one machine: a runner, a scheduler in its loop, and memory for sequences. Any thread may call any function but
/// `step` and the destructor at any time.
class Engine {
 public:
  /// Plans and reserves all memory that steps will use. @throws InvalidArgument, Unsupported, ResourceExhausted
  Engine(LoadedModel model, const EngineOptions& options);

  /// Every request that has not ended ends as cancelled. No other thread is in a function of the engine then.
  ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const LoadedModel& loaded() const { return model_; }
  const ModelConfig& config() const { return model_.config(); }
  const EngineOptions& options() const { return options_; }
  const KernelTable& kernels() const { return runner_.kernels(); }
  const MemoryPools& pools() const { return *pools_; }
  const MemoryPlan& plan() const { return plan_; }
  size_t threads() const { return runner_.threads(); }
  ActivationType activations() const { return runner_.activations(); }
  size_t max_sequence_tokens() const { return max_sequence_tokens_; }  ///< what one sequence may hold
  Runner& runner() { return runner_; }

  /// Queues a request. It ends with an error if it can't start because sequences that nobody continues hold the memory.
  /// @param ids what to feed: the prompt, or what follows options.sequence
  /// @throws InvalidArgument for an empty prompt, an id outside of the vocabulary, bad parameters, another engine's sequence,
  /// or more tokens than the context holds; NotFound for stop strings without a tokenizer. Nothing was queued then
  std::shared_ptr<Request> submit(std::vector<int32_t> ids, GenerationParams params, SubmitOptions options = {});

  /// Waits until the request has ended, whoever runs the steps.
  /// @throws what ended it, if that was an error; what the follower throws: the request has ended then, as cancelled
  const Answer& follow(Request& request, const Follower& follower = {});

  /// Logits of every position of one fresh sequence.
  /// @param sink gets some rows at a time, in order, on the thread that runs the step. What it throws is thrown here
  /// @throws InvalidArgument as submit; Corrupt, before the sink gets the rows, where they hold no number; as `follow`
  /// @param between as Follower's
  void logits(std::span<const int32_t> ids, const LogitsSink& sink, const std::function<void()>& between = {});

  /// With Drive::ByCaller: as EngineLoop::step.
  StepResult step() { return loop_.step(); }

  /// As EngineLoop and Runner have them.
  void set_taps(Taps* taps) { loop_.set_taps(taps); }
  void set_profile(StageProfile* profile) { runner_.set_profile(profile); }

 private:
  void check_ids(std::span<const int32_t> ids, size_t before) const;

  const LoadedModel model_;
  const EngineOptions options_;
  Runner runner_;
  const size_t max_sequence_tokens_;
  const MemoryPlan plan_;
  const std::shared_ptr<MemoryPools> pools_;
  EngineLoop loop_;
  std::atomic<RequestId> next_id_ = 0;
};

}  // namespace kilin

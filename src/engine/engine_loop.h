// The loop that turns requests into steps: takes what came by mail, asks the scheduler, lets the runner compute, tells what
// came of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/active_request.h"
#include "engine/mailbox.h"
#include "engine/runner.h"
#include "engine/scheduler.h"

namespace kilin {

/// What a step came to.
enum class StepResult : uint8_t {
  Ran,   ///< a batch was computed
  Idle,  ///< there is nothing to do
};

/// Runs on a thread of its own, or by calls of `step`.
class EngineLoop {
 public:
  struct Limits {
    size_t prefill_chunk;  ///< most prompt tokens a step
    size_t max_sequences;  ///< that may run at once: the slots of the pools
  };

  /// @param runner,pools outlive it. @param workspace_bytes what a step of these limits takes. @param model named in errors
  EngineLoop(Runner& runner, std::shared_ptr<MemoryPools> pools, size_t workspace_bytes, const Limits& limits,
             std::vector<BlockKind> blocks, std::string model);

  /// Ends the thread, then every request that is left: as cancelled.
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  /// From now on a thread steps whenever there is something to do. @throws ResourceExhausted
  void start_thread();

  /// Requests and cancellations are put here, on any thread.
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  /// Runs one batch: the next chunk of waiting prompts, and one token of every request whose prompt is read. Cancelled requests
  /// end first. Whatever goes wrong ends the requests that it concerns, with the cause: all of the batch if the step itself
  /// failed (a tap threw, or there was no memory), one request if its logits hold no number, or it can't start.
  /// @pre no thread was started
  StepResult step() KILIN_EXCLUDES(stepping_);

  /// Shows inner values of all later steps to `taps`; null shows none.
  void set_taps(Taps* taps) KILIN_EXCLUDES(stepping_);

 private:
  using Requests = std::vector<std::unique_ptr<ActiveRequest>>;

  void run_thread() noexcept;
  void take_mail() KILIN_REQUIRES(stepping_);
  void end_cancelled() KILIN_REQUIRES(stepping_);
  void end_stuck(const StepPlan& plan) KILIN_REQUIRES(stepping_);
  void admit(const StepPlan& plan) KILIN_REQUIRES(stepping_);
  bool fill_batch(const StepPlan& plan) KILIN_REQUIRES(stepping_);
  void compute() KILIN_REQUIRES(stepping_);
  void tell(double seconds) KILIN_REQUIRES(stepping_);
  void fail_batch(const std::exception_ptr& error, const std::string& where) KILIN_REQUIRES(stepping_);
  void fail_all(const std::exception_ptr& error) KILIN_REQUIRES(stepping_);
  void forget_ended() KILIN_REQUIRES(stepping_);
  ActiveRequest* find(RequestId id) KILIN_REQUIRES(stepping_);

  Runner& runner_;
  std::shared_ptr<MemoryPools> pools_;
  std::vector<BlockKind> blocks_;
  std::string model_;
  std::shared_ptr<Mailbox> mailbox_;

  Mutex stepping_;  // held by whoever steps
  Workspace workspace_ KILIN_GUARDED_BY(stepping_);
  Scheduler scheduler_ KILIN_GUARDED_BY(stepping_);
  StepBatch batch_ KILIN_GUARDED_BY(stepping_);
  Requests requests_ KILIN_GUARDED_BY(stepping_);  // that have not ended, in order of arrival
  /// Of this step, in the order of the batch.
  struct InBatch {
    ActiveRequest* request;
    PlannedSpan span;
    bool draws;
  };
  std::vector<InBatch> in_batch_ KILIN_GUARDED_BY(stepping_);
  Taps* taps_ KILIN_GUARDED_BY(stepping_) = nullptr;

  std::thread thread_;
};

}  // namespace kilin

// Computes steps: the one place where a batch meets the model. Knows no requests and no policy.
#pragma once

#include <cstddef>
#include <optional>

#include "core/fair_mutex.h"
#include "engine/memory_plan.h"
#include "engine/step_batch.h"
#include "loading/loaded_model.h"
#include "model/exec_context.h"

namespace kilin {

struct RunnerOptions {
  size_t threads = 0;                              ///< 0: as many as this process may use
  std::optional<ActivationType> activations = {};  ///< unset: int8 if the model has weights in panels, else f32
  std::optional<KvType> kv_type = {};              ///< unset: f32 with f32 activations, else bf16
  KernelChoice kernels = KernelChoice::from_environment();
};

/// A model with the threads and kernels that run it. Any thread may ask for a step; steps run one after the other, in the order
/// in which they were asked for. The model must outlive it.
class Runner {
 public:
  /// @throws InvalidArgument, Unsupported as select_kernels; ResourceExhausted
  Runner(const LoadedModel& model, const RunnerOptions& options);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  size_t threads() const { return pool_.size(); }
  const KernelTable& kernels() const { return kernels_; }
  ActivationType activations() const { return activations_; }
  KvType kv_type() const { return kv_type_; }

  /// Runs the batch: moves the states and latents of its sequences on, gives logits to those who want them, draws tokens.
  /// @param pools of the batch's sequences. @param workspace holds step_workspace_bytes; this step's alone
  /// @param taps sees inner values, the logits and probabilities among them; null: nobody does
  /// @throws what taps and sinks throw, as KimiLinearForCausalLM::forward, bad_alloc. States may have moved then
  void run(StepBatch& batch, MemoryPools& pools, Workspace& workspace, Taps* taps = nullptr) KILIN_EXCLUDES(computing_);

  /// Held by whoever computes. A tap that waits for somebody lets others compute meanwhile (FairUnlock).
  FairMutex& computing() KILIN_THREAD_ATTRIBUTE(lock_returned(computing_)) { return computing_; }

  /// For computing outside a step.
  ExecContext exec_context(Workspace& workspace, Taps* taps = nullptr) KILIN_REQUIRES(computing_);

  /// Adds up all later steps in `profile`; null ends it. Changes no byte of what is computed.
  void set_profile(StageProfile* profile) KILIN_EXCLUDES(computing_);

 private:
  Tensor show_logits(ExecContext& ctx, MatView<const float> hidden) KILIN_REQUIRES(computing_);
  void show_probabilities(ExecContext& ctx, MatView<const float> hidden, const Tensor& shown, const StepBatch& batch)
      KILIN_REQUIRES(computing_);
  void finish_rows(ExecContext& ctx, Workspace::Frame& frame, MatView<const float> hidden, const Tensor& shown,
                   StepBatch& batch) KILIN_REQUIRES(computing_);

  const KimiLinearForCausalLM& model_;
  ActivationType activations_;
  KvType kv_type_;
  KernelTable kernels_;
  FairMutex computing_;
  ThreadPool pool_;
  LocalCommunicator communicator_;
  Sampler sampler_ KILIN_GUARDED_BY(computing_);
  std::vector<SampleRow> draws_ KILIN_GUARDED_BY(computing_);  // of a block of logits
  StageProfile* profile_ KILIN_GUARDED_BY(computing_) = nullptr;
};

}  // namespace kilin

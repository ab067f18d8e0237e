// The step loop: requests go in, batches run, tokens come out.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/memory_plan.h"
#include "engine/request.h"
#include "engine/step_batch.h"
#include "loading/loaded_model.h"

namespace kilin {

struct EngineOptions {
  size_t threads = 0;           ///< 0: as many as this process may use
  size_t prefill_chunk = 2048;  ///< most prompt tokens a step. From 64 on, cuts fall on multiples of 64 and change no byte
  std::optional<ActivationType> activations = {};  ///< unset: int8 if the model has weights in panels, else f32
  std::optional<KvType> kv_type = {};              ///< unset: f32 with f32 activations, else bf16
  size_t max_sequences = 1;                        ///< sequences that may be in memory at once
  size_t context_tokens = 32768;  ///< tokens that all sequences together may hold; at most the model's own length is used
  KernelChoice kernels = KernelChoice::from_environment();

  static constexpr size_t kMostThreads = 4096, kMostPrefillChunk = 1u << 16;

  /// For before a model is loaded, which takes long. @throws InvalidArgument naming the option, its value and its range; as
  /// select_kernels
  void validate() const;
};

/// What a step came to.
enum class StepResult : uint8_t {
  Ran,      // a batch was computed
  Blocked,  // requests wait, and none can start: sequences that are kept hold the memory
  Idle,     // there is nothing to do
};

/// One model on one machine. One thread at a time drives it; requests are read by that thread.
class Engine {
 public:
  /// Plans and reserves all memory that steps will use. @throws InvalidArgument, Unsupported, ResourceExhausted
  Engine(LoadedModel model, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const LoadedModel& loaded() const { return model_; }
  const ModelConfig& config() const { return model_.config(); }
  const EngineOptions& options() const { return options_; }
  const KernelTable& kernels() const { return kernels_; }
  const MemoryPools& pools() const { return *pools_; }
  const MemoryPlan& plan() const { return plan_; }
  size_t threads() const { return pool_.size(); }
  ActivationType activations() const { return activations_; }
  size_t context_tokens() const { return context_tokens_; }  ///< what one sequence may hold

  /// Queues a request.
  /// @param ids what to feed: the prompt, or what follows `sequence`
  /// @param sequence what earlier requests of this engine left, taken over even if this throws; a fresh one if there is none
  /// @throws InvalidArgument for an empty prompt, an id outside of the vocabulary, bad parameters, another engine's sequence,
  /// or more tokens than the context holds; NotFound for stop strings without a tokenizer. Nothing was queued then
  std::shared_ptr<Request> submit(std::vector<int32_t> ids, GenerationParams params, TokenListener listener = {},
                                  std::optional<Sequence> sequence = {});

  /// Runs one batch: the next chunk of waiting prompts and one token of every running request. Requests whose time has come get
  /// their token and end; cancelled ones end first.
  ///
  /// An exception of a listener leaves here only when every request of the batch has its token and every listener was called.
  /// Any other one (a tap's, or no memory) ends all requests of the batch with FinishReason::Error: their states have moved.
  StepResult step();

  /// Steps until the request has finished. @param between called after each step, for progress and cancelling
  /// @throws ResourceExhausted if it can't start for want of memory; Corrupt if the model gave no number (FinishReason::Error).
  /// Whatever is thrown, the request has ended then
  void run(Request& request, const std::function<void()>& between = {});

  /// Logits of every position of one fresh sequence, some rows at a time, in order.
  /// @param sink gets [R, vocab_size] fp32, valid during the call, and the position of its first row
  /// @throws InvalidArgument as submit; ResourceExhausted if other sequences hold the memory; Corrupt, before the sink gets the
  /// rows, where they hold no number
  void logits(std::span<const int32_t> ids, const std::function<void(size_t position, MatView<const float>)>& sink);

  /// What a pass of this engine's model runs on that is no step of its own: in the caller's memory, with the caller's taps.
  ExecContext exec_context(Workspace& workspace, Taps* taps);

  /// Shows inner values of all later steps to `taps`; null shows none.
  void set_taps(Taps* taps) { taps_ = taps; }

  /// Adds up all later steps in `profile`; null ends it. Changes no byte of what is computed.
  void set_profile(StageProfile* profile) { profile_ = profile; }

 private:
  struct Fed {
    std::shared_ptr<Request> request;  // alive until its listener was called, whoever else holds it
    size_t tokens;
    bool samples;  // its prompt is done: it gets a token
    std::optional<int32_t> id;
    std::string shown;
  };

  ExecContext context() { return exec_context(workspace_, taps_); }
  void check_ids(std::span<const int32_t> ids, size_t before) const;
  Sequence fresh_sequence();
  bool has_room_for(const Request& request) const;
  void end_cancelled();
  void admit();
  void build_batch();
  void add_prompt_chunk(const std::shared_ptr<Request>& shared, size_t& budget);
  void compute_batch();
  void call_listeners();
  void abandon(Request& request);

  LoadedModel model_;
  EngineOptions options_;
  ActivationType activations_;
  KernelTable kernels_;
  ThreadPool pool_;
  LocalCommunicator communicator_;
  size_t context_tokens_;
  MemoryPlan plan_;
  std::shared_ptr<MemoryPools> pools_;
  Workspace workspace_;
  Sampler sampler_;
  Taps* taps_ = nullptr;
  StageProfile* profile_ = nullptr;

  std::deque<std::shared_ptr<Request>> waiting_;   // in order of arrival; without memory unless they continue a sequence
  std::vector<std::shared_ptr<Request>> running_;  // hold a slot and all the pages that they can need
  StepBatch batch_;
  std::vector<Fed> fed_;  // this step's requests, in the order of the batch
};

}  // namespace kilin

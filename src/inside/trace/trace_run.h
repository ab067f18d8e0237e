// Runs prompts and shows every value to an observer, which decides what to do with it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "inside/trace/traced_value.h"
#include "model/block_kinds.h"

namespace kilin {

/// A prompt to look into. It is fed whole in one step, however long it is, so that no value is cut by a prefill chunk.
struct TracePrompt {
  std::vector<int32_t> ids;
  /// Where further steps begin, ascending: {5} feeds tokens 0 to 4 in step 0, the rest in step 1, so that states can be read
  /// and set in between. All prompts of a trace have the same number of cuts.
  std::vector<size_t> cuts = {};
};

struct TraceOptions {
  size_t new_tokens = 0;  ///< that each prompt generates; the last one is not fed. Without cuts, step 1 feeds the first one
  SamplingParams sampling = {};
  std::function<void(size_t prompt, int32_t id)> on_token = {};  ///< called by the thread that runs the pass
  /// For interrupts. The thread that waits for the pass calls it often: at every value, wanted or not, or now and then in the
  /// reader of an InterleavedTrace. An exception from it ends the trace.
  std::function<void()> poll = {};
};

struct TraceResult {
  std::vector<std::vector<int32_t>> output_ids;  ///< by prompt: the generated ids
};

/// Sees the values of a pass. Called by the thread that runs the pass; an exception from it ends the trace.
class TraceObserver {
 public:
  virtual ~TraceObserver() = default;
  virtual bool wants(const Moment& moment) = 0;
  /// The pass has reached a value, wanted or not.
  virtual void reached(const Moment& moment) = 0;
  /// The pass has reached a wanted value.
  virtual void at(const TracedValue& value) = 0;
  /// Whether nothing later is wanted: a trace without new tokens ends then.
  virtual bool is_done(const Moment& moment) const = 0;
};

/// Checks what run_trace takes. @returns its steps: the parts of the prompts, then the fed new tokens
/// @throws InvalidArgument for no prompts, an empty one, ids outside of the vocabulary, invalid cuts, prompts with different
/// numbers of parts, bad sampling, or more tokens than the model was made for. Of new tokens that holds for the shortest
/// prompt: a longer one beside it goes on past the model's length, and what it says there is no answer
size_t trace_steps(const ModelConfig& config, std::span<const TracePrompt> prompts, const TraceOptions& options);

/// Runs the prompts side by side in its own memory: the engine's sequences and its limits on their number, their length and the
/// chunk do not matter, and an exception leaves the engine as it was. A prompt's results do not depend on the others: the batch
/// is ragged, nothing is padded. Steps are Extend for the prompts' parts and Decode for new tokens.
/// @pre trace_steps has checked the prompts. @throws what the observer throws; Corrupt if no logit is a number;
/// ResourceExhausted
TraceResult run_trace(Engine& engine, std::span<const TracePrompt> prompts, const TraceOptions& options,
                      TraceObserver& observer);

}  // namespace kilin

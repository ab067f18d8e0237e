// Runs prompts so that somebody can look inside: who looks, and what he does, is an observer's affair.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "inside/trace/traced_value.h"

namespace kilin {

/// A prompt to look into. It is fed in one step, whole, however long it is: a value is never cut by a prefill chunk.
struct TracePrompt {
  std::vector<int32_t> ids;
  /// Where else a step begins, ascending: {5} feeds tokens 0 to 4 in step 0, the rest in step 1, so that states can be read and
  /// set between. All prompts of a trace have as many.
  std::vector<size_t> cuts = {};
};

struct TraceOptions {
  size_t new_tokens = 0;  ///< that each prompt generates; the last is not fed. Step 1 (without cuts) feeds the first one
  SamplingParams sampling = {};
  std::function<void(size_t prompt, int32_t id)> on_token = {};  ///< called by the thread that runs the pass
  /// Called often while the pass runs, by the thread that waits for it: at every value, wanted or not, or now and then by the
  /// reader of an InterleavedTrace. What it throws ends the trace. For interrupts.
  std::function<void()> poll = {};
};

struct TraceResult {
  std::vector<std::vector<int32_t>> output_ids;  ///< by prompt: what was generated
};

/// Who looks on. Called by the thread that runs the pass; what it throws ends the trace.
class TraceObserver {
 public:
  virtual ~TraceObserver() = default;
  virtual bool wants(const Moment& moment) = 0;
  /// The pass has come to a value, asked for or not.
  virtual void reached(const Moment& moment) = 0;
  /// A wanted value.
  virtual void at(const TracedValue& value) = 0;
  /// Whether nothing later is wanted: a trace without new tokens ends then.
  virtual bool is_done(const Moment& moment) const = 0;
};

/// What blocks a model has, for names.
std::vector<BlockKind> block_kinds(const ModelConfig& config);

/// Checks what run_trace takes. @returns its steps: the parts of the prompts, then the fed new tokens
/// @throws InvalidArgument for no prompts, an empty one, ids outside of the vocabulary, cuts that are none, prompts of
/// different numbers of parts, bad sampling, or more tokens than the model was made for. Of new tokens that holds for the
/// shortest prompt: a longer one beside it goes on past the model's length, and what it says there is no answer
size_t trace_steps(const ModelConfig& config, std::span<const TracePrompt> prompts, const TraceOptions& options);

/// Runs the prompts side by side in memory of its own: neither the engine's sequences nor its limits on their number, their
/// length and the chunk count, and whatever is thrown leaves the engine as it was. What one prompt gives does not depend on the
/// others: they are ragged, nothing is padded. Steps are Extend for the prompts' parts and Decode for new tokens.
/// @pre trace_steps has checked the prompts. @throws what the observer throws; Corrupt if no logit is a number;
/// ResourceExhausted
TraceResult run_trace(Engine& engine, std::span<const TracePrompt> prompts, const TraceOptions& options,
                      TraceObserver& observer);

}  // namespace kilin

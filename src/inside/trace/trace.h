// A trace whose values to keep and edits are listed before it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "inside/trace/trace_run.h"

namespace kilin {

/// A value that a trace was asked to keep, by prompt; filled by Trace::run.
class SavedValue {
 public:
  explicit SavedValue(const Moment& moment, std::string name) : moment_(moment), name_(std::move(name)) {}

  const Moment& moment() const { return moment_; }
  const std::string& name() const { return name_; }
  /// Whether the trace has run and the prompt has this value: a fresh prompt has no state_input unless an edit made one.
  bool has(size_t prompt) const { return prompt < prompts_.size() && !prompts_[prompt].empty(); }
  /// A copy without gaps, in the shape that `support` tells; f32, or i32 for ids and indices.
  /// @throws OutOfOrder if has(prompt) is false
  const Tensor& of(size_t prompt) const;

 private:
  friend class Trace;
  Moment moment_;
  std::string name_;
  std::vector<Tensor> prompts_;
};

/// Called at the value's point of use; the model goes on with what it writes into the value.
using TraceEdit = std::function<void(const TracedValue&)>;

/// Prompts with a list of saves and edits. Those of one value are done in the order in which they were requested: a save before
/// an edit keeps the old value, a save after it the new one. The pass ends after the last value asked for, unless new tokens
/// are wanted. Not thread-safe; the engine must outlive it.
class Trace {
 public:
  static constexpr size_t kEveryStep = SIZE_MAX;

  /// @throws as trace_steps
  Trace(Engine& engine, std::vector<TracePrompt> prompts, TraceOptions options = {});

  /// Keeps a value of one step. @param name any that find_site knows
  /// @throws Unavailable, NotFound as find_site; InvalidArgument for a step that is not run
  std::shared_ptr<const SavedValue> save(std::string_view name, size_t step = 0);

  /// Changes a value of one step, or of every step. @throws as save; InvalidArgument for a value that can't be written
  void edit(std::string_view name, TraceEdit edit, size_t step = 0);

  /// @throws what an edit throws, and as run_trace. The engine is then as it was before; values saved until then stay
  TraceResult run();

  size_t steps() const { return steps_; }

 private:
  struct Action {
    Moment moment;  // its step may be kEveryStep
    TraceEdit edit;
    std::shared_ptr<SavedValue> save;  // if there is no edit
  };
  class Observer;

  Moment moment_of(std::string_view name, size_t step) const;

  Engine& engine_;
  std::vector<TracePrompt> prompts_;
  TraceOptions options_;
  std::vector<BlockKind> blocks_;
  size_t steps_;
  std::vector<Action> actions_;
};

}  // namespace kilin

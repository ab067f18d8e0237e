// A trace whose reader runs beside the pass: each read waits until the pass has reached the value, and the pass waits there
// until the reader wants a later one. Bindings build their traced blocks of code on this.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "inside/trace/trace_run.h"

namespace kilin {

/// The pass runs on its own thread, and only while the reader waits: never both at once. So values need no lock, and a layer
/// that must choose its path knows what the reader wants. Calls from several threads take turns. Whenever a call has returned,
/// the pass is stopped and the engine computes for others. The engine must outlive it.
class InterleavedTrace {
 public:
  /// Does not start the pass yet. @throws as trace_steps
  InterleavedTrace(Engine& engine, std::vector<TracePrompt> prompts, TraceOptions options = {});

  /// Ends the pass where it is.
  ~InterleavedTrace();
  InterleavedTrace(const InterleavedTrace&) = delete;
  InterleavedTrace& operator=(const InterleavedTrace&) = delete;

  /// Lets the pass go on to a value. At the next call, the model goes on with whatever was written there.
  /// @returns the value, valid until the next call; the same object if the pass is there already
  /// @throws Unavailable, NotFound as find_site; InvalidArgument for a step that is not run; OutOfOrder for a value that the
  /// pass has already left behind. All of these are thrown at once and do not move the pass. Any other exception came from the
  /// pass itself or TraceOptions::poll, and has ended the pass
  const TracedValue& wait_for(std::string_view name, size_t step = 0);
  const TracedValue& wait_for(const Moment& moment);

  /// Call this when the reader wants no more values. If new tokens were asked for, the pass runs to its end, else it ends here.
  /// @throws what the pass throws, and TraceOptions::poll
  TraceResult finish();

  size_t steps() const { return steps_; }
  const std::vector<BlockKind>& blocks() const { return blocks_; }

 private:
  class Observer;
  enum class Turn : uint8_t { Reader, Pass };

  void let_pass_run(std::unique_lock<std::mutex>& lock);
  void run_pass() noexcept;
  std::string describe(const Moment& moment) const;

  Engine& engine_;
  const std::vector<TracePrompt> prompts_;
  TraceOptions options_;
  const std::function<void()> poll_;  // called by the reader, not by the pass
  const std::vector<BlockKind> blocks_;
  const size_t steps_;

  std::mutex reader_;  // held by the one call that reads
  std::mutex mutex_;   // guards all below; the side whose turn it is may read and write them
  std::condition_variable changed_;
  Turn turn_ = Turn::Reader;
  std::atomic<bool> stop_ = false;        // asks the pass to end; an interrupt sets it out of turn
  bool ended_ = false;                    // the pass has ended
  std::optional<Moment> wanted_;          // the value that the reader waits for
  std::optional<Moment> reached_;         // the last value that the pass reached
  const TracedValue* current_ = nullptr;  // the value that the pass is at, if the reader has it
  std::exception_ptr error_;              // the exception that ended the pass
  TraceResult result_;
  std::thread thread_;
};

}  // namespace kilin

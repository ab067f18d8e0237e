// A trace whose reader runs beside the pass: each read waits until the pass has come to the value, and the pass waits there
// until the reader wants a later one. What bindings build a traced block of code on.
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

/// The pass runs on a thread of its own, and only while the reader waits: never both at once. So nothing needs a lock, and
/// what a reader asks for is known when a layer must choose its path. Calls of several threads take turns. While the pass
/// stands still, which it does whenever a call has returned, the engine computes for others. The engine must outlive it.
class InterleavedTrace {
 public:
  /// Nothing runs yet. @throws as trace_steps
  InterleavedTrace(Engine& engine, std::vector<TracePrompt> prompts, TraceOptions options = {});

  /// Ends the pass where it stands.
  ~InterleavedTrace();
  InterleavedTrace(const InterleavedTrace&) = delete;
  InterleavedTrace& operator=(const InterleavedTrace&) = delete;

  /// Lets the pass go on to a value. What is written there the model goes on with when the next call lets it.
  /// @returns the value, valid until the next call; the same one if the pass stands there already
  /// @throws Unavailable, NotFound as find_site, InvalidArgument for a step that is not run: at once, and the pass stands where
  /// it stood; so it does for OutOfOrder, a value that it has left behind. Anything else is what the pass itself or
  /// TraceOptions::poll threw; the pass has ended then
  const TracedValue& wait_for(std::string_view name, size_t step = 0);
  const TracedValue& wait_for(const Moment& moment);

  /// The reader wants no more. With new tokens asked for, the pass goes on to its end, else it ends here.
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
  const std::function<void()> poll_;  // the reader's affair, not the pass's
  const std::vector<BlockKind> blocks_;
  const size_t steps_;

  std::mutex reader_;  // held by the one call that reads
  std::mutex mutex_;   // of all below; whose turn it is may read and write them
  std::condition_variable changed_;
  Turn turn_ = Turn::Reader;
  std::atomic<bool> stop_ = false;        // the pass shall end; set out of turn by an interrupt
  bool ended_ = false;                    // it has
  std::optional<Moment> wanted_;          // what the reader waits for
  std::optional<Moment> reached_;         // the last value that the pass came to
  const TracedValue* current_ = nullptr;  // where it stands, if the reader has it
  std::exception_ptr error_;              // what ended it
  TraceResult result_;
  std::thread thread_;
};

}  // namespace kilin

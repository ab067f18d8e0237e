// Decides what the next step holds, from sizes alone: who may start, how much of which prompt is read, who gets a token.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "model/forward_batch.h"

namespace kilin {

using RequestId = uint64_t;

/// A request as the scheduler knows it.
struct RequestSizes {
  size_t start = 0;          ///< tokens that its sequence holds already
  size_t prompt_tokens = 0;  ///< to be read after them; at least 1
  size_t new_tokens = 0;     ///< the most that are drawn after the prompt. The last one is not fed
  bool holds_slot = false;   ///< its sequence has a slot for a state...
  size_t held_pages = 0;     ///< ... and so many pages of latents

  /// The most tokens that its sequence can come to hold.
  size_t most_tokens() const { return start + prompt_tokens + (new_tokens == 0 ? 0 : new_tokens - 1); }
};

/// What no sequence holds.
struct FreeMemory {
  size_t slots = 0;
  size_t pages = 0;
};

/// A request's part of a step.
struct PlannedSpan {
  RequestId id;
  ForwardMode mode;
  size_t tokens;
  bool ends_prompt;  ///< its prompt ends with this span
};

struct StepPlan {
  std::vector<RequestId> admitted;  ///< start with this step: each takes memory for its most_tokens() first
  std::vector<PlannedSpan> spans;   ///< those that get a token first, then prompts; empty if nothing runs
  std::vector<RequestId> stuck;     ///< can't start: nothing runs, and sequences that nobody continues hold the memory
};

/// Policy:
/// - A request starts with all the memory that it can come to need, so none is stopped half-way.
/// - One whose sequence holds a slot starts as soon as its further pages are free, whoever else waits: only by running can it
///   give back what it holds. All others start in order of arrival, and none overtakes.
/// - A step gives a token to everyone whose prompt is read, and reads at most `prefill_chunk` prompt tokens, in order of start.
/// - A prompt that does not fit is cut at a multiple of 64 of absolute position, which changes no byte. Chunks below 64 are cut
///   as they come; then a chunk goes in whole or not at all, so that where it is cut depends on its own length alone.
///
/// Not thread-safe.
class Scheduler {
 public:
  /// @param prefill_chunk most prompt tokens a step, at least 1
  explicit Scheduler(size_t prefill_chunk) : prefill_chunk_(prefill_chunk) {}

  /// At the end of the queue. @pre no other request has this id
  void add(RequestId id, const RequestSizes& sizes);

  /// What the next step holds. @param free what it may give to requests that start. Valid until the next call
  const StepPlan& plan(const FreeMemory& free);

  /// The last plan's spans have run.
  void advance();

  /// A request has ended, whether it ran or waited; what it held is no longer its own.
  void remove(RequestId id);

  size_t waiting() const { return waiting_.size(); }
  size_t running() const { return running_.size(); }

 private:
  struct Entry {
    RequestId id;
    RequestSizes sizes;
    size_t fed = 0;  // tokens since `start`
    size_t prompt_left() const { return sizes.prompt_tokens - std::min(fed, sizes.prompt_tokens); }
  };

  void admit(FreeMemory free);
  bool start_if_it_fits(const Entry& entry, FreeMemory& free);
  size_t next_chunk(const Entry& entry, size_t budget) const;

  size_t prefill_chunk_;
  std::deque<Entry> waiting_;   // in order of arrival
  std::vector<Entry> running_;  // in order of start
  StepPlan plan_;
};

}  // namespace kilin

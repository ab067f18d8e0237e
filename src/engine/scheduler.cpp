#include "engine/scheduler.h"

#include <algorithm>
#include <cassert>

#include "kernels/kda.h"

namespace kilin {

void Scheduler::add(RequestId id, const RequestSizes& sizes) {
  assert(sizes.prompt_tokens > 0);
  waiting_.push_back({.id = id, .sizes = sizes});
}

// Whether the memory that is missing is there; then it is taken, and the request runs.
bool Scheduler::start_if_it_fits(const Entry& entry, FreeMemory& free) {
  const size_t pages = LatentKvPool::pages_for(entry.sizes.most_tokens());
  const size_t missing_pages = pages - std::min(pages, entry.sizes.held_pages);
  const size_t missing_slots = entry.sizes.holds_slot ? 0 : 1;
  if (missing_slots > free.slots || missing_pages > free.pages) return false;
  free.slots -= missing_slots;
  free.pages -= missing_pages;
  running_.push_back(entry);
  plan_.admitted.push_back(entry.id);
  return true;
}

void Scheduler::admit(FreeMemory free) {
  std::erase_if(waiting_, [&](const Entry& entry) { return entry.sizes.holds_slot && start_if_it_fits(entry, free); });
  const auto needs_a_slot = [](const Entry& entry) { return !entry.sizes.holds_slot; };
  for (;;) {
    const auto first = std::ranges::find_if(waiting_, needs_a_slot);
    if (first == waiting_.end() || !start_if_it_fits(*first, free)) return;
    waiting_.erase(first);
  }
}

size_t Scheduler::next_chunk(const Entry& entry, size_t budget) const {
  const size_t left = entry.prompt_left(), start = entry.sizes.start + entry.fed;
  size_t take = std::min(left, prefill_chunk_);
  if (prefill_chunk_ >= kKdaChunk) {
    take = std::min(take, budget);
    if (take < left) take = std::max(start, (start + take) / kKdaChunk * kKdaChunk) - start;
  }
  return take <= budget ? take : 0;
}

const StepPlan& Scheduler::plan(const FreeMemory& free) {
  plan_.admitted.clear();
  plan_.spans.clear();
  plan_.stuck.clear();
  admit(free);
  if (running_.empty()) {
    if (!waiting_.empty()) plan_.stuck.push_back(waiting_.front().id);
    return plan_;
  }
  for (const Entry& entry : running_)
    if (entry.prompt_left() == 0)
      plan_.spans.push_back({.id = entry.id, .mode = ForwardMode::Decode, .tokens = 1, .ends_prompt = false});
  size_t budget = prefill_chunk_;
  for (const Entry& entry : running_) {
    const size_t left = entry.prompt_left(), take = left == 0 ? 0 : next_chunk(entry, budget);
    if (take == 0) continue;
    budget -= take;
    plan_.spans.push_back({.id = entry.id, .mode = ForwardMode::Extend, .tokens = take, .ends_prompt = take == left});
  }
  return plan_;
}

void Scheduler::advance() {
  for (const PlannedSpan& span : plan_.spans) {
    const auto at = std::ranges::find(running_, span.id, &Entry::id);
    if (at != running_.end()) at->fed += span.tokens;
  }
}

void Scheduler::remove(RequestId id) {
  const auto is_it = [id](const Entry& entry) { return entry.id == id; };
  std::erase_if(waiting_, is_it);
  std::erase_if(running_, is_it);
}

}  // namespace kilin

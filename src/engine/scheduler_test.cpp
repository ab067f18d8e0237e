// Policy alone: a runner that computes nothing, and memory that is two numbers.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace kilin {
namespace {

constexpr size_t kPage = LatentKvPool::kPageTokens;

// What a request holds, and how far it has come, by the fake runner's own books.
struct Held {
  RequestSizes sizes;
  size_t fed = 0;
  bool has_slot = false;
  size_t pages = 0;
  size_t most_tokens() const { return sizes.most_tokens() - sizes.start; }  // to be fed
};

// Runs a scheduler's plans and holds each against what the policy promises.
class FakeRunner {
 public:
  FakeRunner(size_t slots, size_t pages, size_t prefill_chunk)
      : scheduler_(prefill_chunk), free_{slots, pages}, prefill_chunk_(prefill_chunk) {}

  RequestId submit(const RequestSizes& sizes) {
    const RequestId id = next_++;
    requests_[id] = {.sizes = sizes, .has_slot = sizes.holds_slot, .pages = sizes.held_pages};
    if (!sizes.holds_slot) fresh_in_order_.push_back(id);
    scheduler_.add(id, sizes);
    return id;
  }

  void cancel(RequestId id) { end(id); }
  bool is_there(RequestId id) const { return requests_.contains(id); }

  // @returns false if nothing ran
  bool step() {
    const StepPlan& plan = scheduler_.plan(free_);
    for (RequestId id : plan.admitted) admit(id);
    if (!plan.stuck.empty()) {
      EXPECT_TRUE(plan.spans.empty()) << "somebody runs, and will give memory back";
      for (RequestId id : std::vector(plan.stuck)) {
        ++stuck_;
        end(id);
      }
      return true;
    }
    check(plan);
    scheduler_.advance();
    std::vector<RequestId> ended;
    for (const PlannedSpan& span : plan.spans) {
      Held& request = requests_.at(span.id);
      request.fed += span.tokens;
      EXPECT_LE(request.fed, request.most_tokens());
      EXPECT_EQ(span.ends_prompt, span.mode == ForwardMode::Extend && request.fed == request.sizes.prompt_tokens);
      if (request.fed == request.most_tokens()) ended.push_back(span.id);
    }
    const bool ran = !plan.spans.empty();
    for (RequestId id : ended) end(id);
    return ran;
  }

  const FreeMemory& free() const { return free_; }
  size_t stuck() const { return stuck_; }
  size_t left() const { return requests_.size(); }

 private:
  void admit(RequestId id) {
    Held& request = requests_.at(id);
    if (!request.has_slot) {
      ASSERT_EQ(fresh_in_order_.front(), id) << "overtook another that waits for a slot";
      fresh_in_order_.erase(fresh_in_order_.begin());
      ASSERT_GT(free_.slots, 0u);
      --free_.slots;
      request.has_slot = true;
    }
    const size_t needed = LatentKvPool::pages_for(request.sizes.most_tokens());
    const size_t more = needed - std::min(needed, request.pages);
    ASSERT_LE(more, free_.pages);
    free_.pages -= more;
    request.pages += more;
    running_.insert(id);
  }

  void check(const StepPlan& plan) {
    size_t prompt_tokens = 0;
    std::set<RequestId> seen;
    bool prompts_have_begun = false;
    for (const PlannedSpan& span : plan.spans) {
      const Held& request = requests_.at(span.id);
      EXPECT_TRUE(running_.contains(span.id));
      EXPECT_TRUE(seen.insert(span.id).second) << "twice in one step";
      EXPECT_GT(span.tokens, 0u);
      if (span.mode == ForwardMode::Decode) {
        EXPECT_FALSE(prompts_have_begun);
        EXPECT_EQ(span.tokens, 1u);
        EXPECT_GE(request.fed, request.sizes.prompt_tokens);
        continue;
      }
      prompts_have_begun = true;
      prompt_tokens += span.tokens;
      const size_t end = request.sizes.start + request.fed + span.tokens;
      EXPECT_TRUE(span.ends_prompt || (prefill_chunk_ < 64 ? span.tokens == prefill_chunk_ : end % 64 == 0))
          << "cut at " << end << " by what else runs";
    }
    EXPECT_LE(prompt_tokens, prefill_chunk_);
    for (RequestId id : running_) {
      const bool is_reading = requests_.at(id).fed < requests_.at(id).sizes.prompt_tokens;
      EXPECT_TRUE(is_reading || seen.contains(id)) << "no token for " << id;
    }
  }

  void end(RequestId id) {
    const Held request = requests_.at(id);
    scheduler_.remove(id);
    requests_.erase(id);
    running_.erase(id);
    std::erase(fresh_in_order_, id);
    free_.slots += request.has_slot ? 1 : 0;
    free_.pages += request.pages;
  }

  Scheduler scheduler_;
  FreeMemory free_;
  size_t prefill_chunk_;
  std::map<RequestId, Held> requests_;
  std::set<RequestId> running_;
  std::vector<RequestId> fresh_in_order_;
  RequestId next_ = 0;
  size_t stuck_ = 0;
};

// Thousands of mixes: prompts short and long, sequences that go on, cancellations, memory of all sizes.
TEST(Scheduler, EveryRequestOfEveryMixEndsAndAllMemoryComesBack) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](size_t most) { return static_cast<size_t>(random() % (most + 1)); };
    const size_t slots = 1 + up_to(5), pages = 1 + up_to(40);
    const size_t chunk = std::array<size_t, 5>{1, 7, 64, 200, 2048}[up_to(4)];
    FakeRunner runner(slots, pages, chunk);
    std::vector<RequestId> all;
    size_t steps = 0, tokens = 0;
    for (size_t submitted = 0; submitted < 12 || runner.left() > 0;) {
      if (submitted < 12 && up_to(3) == 0) {
        ++submitted;
        const RequestSizes sizes = {.prompt_tokens = 1 + up_to(400), .new_tokens = up_to(30)};
        if (LatentKvPool::pages_for(sizes.most_tokens()) > pages) continue;  // refused at the engine's door
        tokens += sizes.most_tokens();
        all.push_back(runner.submit(sizes));
      }
      if (!all.empty() && up_to(40) == 0)
        if (const RequestId id = all[up_to(all.size() - 1)]; runner.is_there(id)) runner.cancel(id);
      const size_t left = runner.left();
      EXPECT_EQ(runner.step(), left > 0) << "seed " << seed << ": requests wait, and nothing runs";
      ASSERT_LE(++steps, 100 + 20 * (tokens + 12)) << "seed " << seed << ": no end";
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
    EXPECT_EQ(runner.stuck(), 0u) << "seed " << seed;
    EXPECT_EQ(runner.free().slots, slots);
    EXPECT_EQ(runner.free().pages, pages);
  }
}

TEST(Scheduler, WhoHoldsASlotStartsBeforeWhoWaitsForOne) {
  FakeRunner runner(0, 4, 64);
  const RequestId fresh = runner.submit({.prompt_tokens = 10, .new_tokens = 2});
  const RequestId holder =
      runner.submit({.start = 20, .prompt_tokens = 5, .new_tokens = 1, .holds_slot = true, .held_pages = 1});
  EXPECT_TRUE(runner.step());
  EXPECT_FALSE(runner.is_there(holder));
  EXPECT_TRUE(runner.step());  // by its slot
  EXPECT_TRUE(runner.is_there(fresh));
  EXPECT_TRUE(runner.step());
  EXPECT_FALSE(runner.is_there(fresh));
}

TEST(Scheduler, WhatCanNeverStartIsToldSoAndTheNextOneHasItsChance) {
  FakeRunner runner(1, 2, 64);
  runner.submit({.prompt_tokens = 3 * kPage, .new_tokens = 1});
  const RequestId small = runner.submit({.prompt_tokens = kPage, .new_tokens = 1});
  EXPECT_TRUE(runner.step());
  EXPECT_EQ(runner.stuck(), 1u);
  EXPECT_TRUE(runner.step());
  EXPECT_FALSE(runner.is_there(small));
  EXPECT_EQ(runner.stuck(), 1u);
}

TEST(Scheduler, NothingIsPlannedWhereNothingIsToDo) {
  Scheduler scheduler(64);
  const StepPlan& plan = scheduler.plan({1, 1});
  EXPECT_TRUE(plan.admitted.empty() && plan.spans.empty() && plan.stuck.empty());
}

TEST(Scheduler, ALongPromptIsReadBesideTokensOfOthers) {
  FakeRunner runner(2, 100, 128);
  const RequestId talking = runner.submit({.prompt_tokens = 5, .new_tokens = 8});
  const RequestId reading = runner.submit({.prompt_tokens = 1000, .new_tokens = 1});
  for (int step = 0; step < 8; ++step) EXPECT_TRUE(runner.step());
  EXPECT_FALSE(runner.is_there(talking));  // a token a step, whatever is read
  EXPECT_TRUE(runner.step());
  EXPECT_FALSE(runner.is_there(reading));
}

}  // namespace
}  // namespace kilin

// The tokens and memory that rows need, and whether they are available.
#include <algorithm>

#include "core/error.h"
#include "core/saturating.h"
#include "inside/speed/bench.h"
#include "inside/speed/row_lengths.h"

namespace kilin {

namespace {

struct RowNeed {
  size_t sequences;
  size_t tokens;  // of each
};

RowNeed prompt_need(size_t prompt) { return {1, prompt}; }
RowNeed depth_need(const BenchPlan& plan, size_t depth) { return {1, depth + generated_tokens(plan)}; }
RowNeed batch_need(const BenchPlan& plan, size_t sequences) { return {sequences, kBatchPrompt + generated_tokens(plan)}; }

template <typename F>
void for_each_row(const BenchPlan& plan, F f) {
  for (size_t prompt : plan.prompts) f("a prompt", prompt, prompt_need(prompt));
  for (size_t depth : plan.depths) f("a depth", depth, depth_need(plan, depth));
  for (size_t batch : plan.batches) f("a batch", batch, batch_need(plan, batch));
}

}  // namespace

size_t generated_tokens(const BenchPlan& plan) { return 1 + kWarmUpSteps + plan.repeat * plan.generate + 1; }

void BenchPlan::shorten(const Defaulted& defaulted, size_t model_max_length) {
  if (defaulted.generate) {
    // With the prompt of a batch if that can be, else after no prompt at all.
    const size_t beside = generated_tokens({.generate = 0});
    const size_t room = model_max_length - std::min(model_max_length, beside);
    const size_t after_prompt = room - std::min(room, kBatchPrompt);
    const size_t most = after_prompt >= repeat ? after_prompt / repeat : room / repeat;
    generate = std::clamp<size_t>(most, 1, generate);
  }
  const auto too_long = [&](const RowNeed& need) { return need.tokens > model_max_length; };
  if (defaulted.prompts)
    for (size_t& prompt : prompts) prompt = std::min(prompt, model_max_length);
  // Depth 0 stays where the number of generated tokens was asked for, to be refused if it has no room.
  if (defaulted.depths)
    std::erase_if(depths,
                  [&](size_t depth) { return (defaulted.generate || depth > 0) && too_long(depth_need(*this, depth)); });
  if (defaulted.batches) std::erase_if(batches, [&](size_t batch) { return too_long(batch_need(*this, batch)); });
}

size_t BenchPlan::pool_tokens() const {
  size_t most = kWarmUpPrompt + 1;
  for_each_row(*this, [&](const char*, size_t, RowNeed need) { most = std::max(most, need.sequences * need.tokens); });
  return most;
}

size_t BenchPlan::max_sequences() const {
  size_t most = 1;
  for (size_t batch : batches) most = std::max(most, batch);
  return most;
}

void BenchPlan::require_length(size_t model_max_length) const {
  for_each_row(*this, [&](const char* what, size_t size, RowNeed need) {
    if (need.tokens > model_max_length)
      raise(ErrorCode::InvalidArgument,
            "{} of {} takes {} tokens, generated ones included; expected at most {}, the model_max_length", what, size,
            need.tokens, model_max_length);
  });
}

void BenchPlan::require_memory(const MemoryPlan& plan, uint64_t available_bytes) const {
  for_each_row(*this, [&](const char* what, size_t size, RowNeed need) {
    const uint64_t pages = LatentKvPool::pages_for(need.tokens) * LatentKvPool::kPageTokens;
    const uint64_t latents = saturating_product(saturating_product(need.sequences, pages), plan.latents_per_token);
    const uint64_t states = saturating_product(need.sequences, plan.state_per_sequence);
    const uint64_t all = saturating_sum(saturating_sum(latents, states), plan.workspace);
    if (all > available_bytes)
      raise(ErrorCode::ResourceExhausted,
            "{} of {} needs {:.2f} GB beside the weights (latents {:.2f}, states {:.2f}, workspace {:.2f}); {:.2f} GB are "
            "available",
            what, size, static_cast<double>(all) / 1e9, static_cast<double>(latents) / 1e9, static_cast<double>(states) / 1e9,
            static_cast<double>(plan.workspace) / 1e9, static_cast<double>(available_bytes) / 1e9);
  });
}

}  // namespace kilin

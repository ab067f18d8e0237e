#include "engine/memory_plan.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/saturating.h"
#include "model/dry_run.h"
#include "weights/blank_store.h"
#include "weights/weight_source.h"

namespace kilin {

namespace {

// One layer of each kind: the workspace is that of the largest.
ModelConfig one_layer_a_kind(const ModelConfig& config) {
  ModelConfig small = config;
  small.attention_kinds.clear();
  small.feed_forward_kinds.clear();
  std::vector<std::pair<AttentionKind, FeedForwardKind>> seen;
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::pair kinds(config.attention_kinds[layer], config.feed_forward_kinds[layer]);
    if (std::ranges::find(seen, kinds) != seen.end()) continue;
    seen.push_back(kinds);
    small.attention_kinds.push_back(kinds.first);
    small.feed_forward_kinds.push_back(kinds.second);
  }
  small.num_hidden_layers = seen.size();
  return small;
}

// Of the largest batch: a chunk of prompts and a token of every sequence.
uint64_t workspace_of_step(const KimiLinearForCausalLM& model, const MemoryUse& use) {
  const size_t tokens = use.prefill_chunk + use.sequences;
  return step_workspace_bytes(
      model, {.tokens = tokens, .hidden_rows = tokens, .threads = use.threads, .activations = use.activations});
}

MemoryPlan plan_with(uint64_t workspace, const ModelConfig& config, uint64_t weight_bytes, const MemoryUse& use) {
  MemoryPlan plan;
  plan.weights = weight_bytes;
  plan.workspace = workspace;
  plan.state_per_sequence = RecurrentStatePool::bytes_per_slot(KimiLinearForCausalLM::state_dimensions(config));
  plan.latents_per_token = LatentKvPool::bytes_per_token(KimiLinearForCausalLM::latent_dimensions(config, use.kv_type));
  plan.states = saturating_product(plan.state_per_sequence, use.sequences);
  // The first sequence rounds the sum up to whole pages; each further one may begin another page.
  plan.latent_pages = saturating_sum(LatentKvPool::pages_for(use.pool_tokens), use.sequences == 0 ? 0 : use.sequences - 1);
  plan.latents = saturating_product(plan.latent_pages, LatentKvPool::kPageTokens, plan.latents_per_token);
  return plan;
}

}  // namespace

uint64_t MemoryPlan::working() const { return saturating_sum(saturating_sum(states, latents), workspace); }
uint64_t MemoryPlan::total() const { return saturating_sum(weights, working()); }

MemoryPlan plan_memory(const KimiLinearForCausalLM& model, uint64_t weight_bytes, const MemoryUse& use) {
  return plan_with(workspace_of_step(model, use), model.config(), weight_bytes, use);
}

MemoryPlan plan_memory(const ModelConfig& config, uint64_t weight_bytes, const MemoryUse& use) {
  const ModelConfig small = one_layer_a_kind(config);
  WeightSource source = WeightSource::open(std::make_shared<BlankStore>(small), small);
  return plan_with(workspace_of_step(KimiLinearForCausalLM::load(source, small), use), config, weight_bytes, use);
}

// The rows that pass the final norm lie under everything; over them first the forward pass, then logits: those that taps see
// all at once, then block by block.
uint64_t step_workspace_bytes(const KimiLinearForCausalLM& model, const StepSizes& s) {
  const auto floats = [](size_t rows, size_t cols) { return Workspace::rounded(rows * cols * sizeof(float)); };
  const auto pass = [&](size_t tokens, size_t logit_rows) {
    return workspace_bytes(model,
                           {.tokens = tokens, .logit_rows = logit_rows, .threads = s.threads, .activations = s.activations});
  };
  const ModelConfig& c = model.config();
  const size_t block = std::min(kLogitRows, s.hidden_rows);
  return floats(s.hidden_rows, c.hidden_size) +
         std::max<uint64_t>(pass(s.tokens, s.shown_rows),
                            floats(block, c.hidden_size) + floats(block, c.vocab_size) + pass(0, block));
}

std::string_view to_string(MemoryFit fit) {
  switch (fit) {
    case MemoryFit::Fits:
      return "fits";
    case MemoryFit::NeedsMoreFree:
      return "needs more free memory";
    case MemoryFit::WeightsFromDisk:
      return "weights from disk";
    case MemoryFit::TooLarge:
      return "too large";
  }
  return "";
}

MemoryFit fit_of(const MemoryPlan& plan, const MemoryInfo& memory) {
  if (plan.total() <= memory.available) return MemoryFit::Fits;
  if (plan.total() <= memory.total) return MemoryFit::NeedsMoreFree;
  if (plan.working() <= memory.total) return MemoryFit::WeightsFromDisk;
  return MemoryFit::TooLarge;
}

}  // namespace kilin

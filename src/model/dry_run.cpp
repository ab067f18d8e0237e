#include "model/dry_run.h"

#include <algorithm>
#include <vector>

namespace kilin {

namespace {

// Sequences of `tokens` tokens in all, with slots and pages of pools as the model's: address space that is never touched.
class BlankBatch {
 public:
  BlankBatch(const KimiLinearForCausalLM& model, size_t tokens, size_t most_a_sequence, ForwardMode mode)
      : ids_(tokens),
        pages_(LatentKvPool::pages_for(std::min(tokens, most_a_sequence))),
        pools_{RecurrentStatePool(model.state_dimensions(), (tokens + most_a_sequence - 1) / most_a_sequence),
               LatentKvPool(model.latent_dimensions(KvType::f32), std::max<size_t>(pages_.size(), 1))} {
    for (size_t begin = 0; begin < tokens; begin += most_a_sequence) {
      handles_.push_back(pools_.states.acquire());
      spans_.push_back({.mode = mode, .state_slot = handles_.back().slot(), .pages = pages_});
      cu_seqlens_.push_back(std::min(begin + most_a_sequence, tokens));
    }
  }

  ForwardBatch view() { return {ids_, cu_seqlens_, spans_, {}, &pools_}; }

 private:
  std::vector<int32_t> ids_;
  std::vector<PageId> pages_;  // shared by all: nothing is written
  MemoryPools pools_;
  std::vector<StateHandle> handles_;
  std::vector<SequenceSpan> spans_;
  std::vector<size_t> cu_seqlens_ = {0};
};

}  // namespace

size_t dry_run(size_t threads, ActivationType activations, const std::function<void(ExecContext&)>& pass) {
  ThreadPool pool = ThreadPool::that_skips_loops(threads);
  LocalCommunicator communicator;
  Workspace workspace = Workspace::without_memory();
  ExecContext ctx = {pool, naive_kernels(), communicator, workspace, nullptr, activations};
  pass(ctx);
  return workspace.peak();
}

size_t workspace_bytes(const KimiLinearForCausalLM& model, const PassSize& size) {
  // Extend takes most where one sequence has all the tokens. In Decode their past counts for nothing, and short ones are quick.
  BlankBatch prompt(model, size.tokens, std::max<size_t>(size.tokens, 1), ForwardMode::Extend);
  BlankBatch answers(model, size.tokens, kMlaBlock, ForwardMode::Decode);
  const size_t hidden_size = model.config().hidden_size;
  const auto pass = [&](ExecContext& ctx) {
    for (BlankBatch* batch : {&prompt, &answers}) model.forward(ctx, batch->view(), {nullptr, 0, hidden_size});
    model.logits(ctx, {nullptr, size.logit_rows, hidden_size}, {nullptr, size.logit_rows, model.config().vocab_size});
  };
  if (size.activations) return dry_run(size.threads, *size.activations, pass);
  size_t most = 0;
  for (ActivationType type : kActivationTypes) most = std::max(most, dry_run(size.threads, type, pass));
  return most;
}

}  // namespace kilin

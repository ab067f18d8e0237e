#include "engine/step_batch.h"

namespace kilin {

StepBatch::StepBatch(size_t max_tokens, size_t max_sequences) {
  token_ids_.reserve(max_tokens);
  logit_rows_.reserve(max_tokens);
  cu_seqlens_.reserve(max_sequences + 1);
  sequences_.reserve(max_sequences);
  clear();
}

void StepBatch::clear() {
  token_ids_.clear();
  sequences_.clear();
  logit_rows_.clear();
  cu_seqlens_.assign(1, 0);
}

void StepBatch::add(const Sequence& sequence, ForwardMode mode, std::span<const int32_t> ids) {
  token_ids_.insert(token_ids_.end(), ids.begin(), ids.end());
  cu_seqlens_.push_back(token_ids_.size());
  sequences_.push_back(
      {.mode = mode, .start = sequence.tokens(), .state_slot = sequence.state.slot(), .pages = sequence.pages.pages()});
}

void StepBatch::want_last_row() { logit_rows_.push_back(static_cast<uint32_t>(token_ids_.size() - 1)); }

void StepBatch::want_all_rows() {
  for (size_t row = cu_seqlens_[cu_seqlens_.size() - 2]; row < token_ids_.size(); ++row)
    logit_rows_.push_back(static_cast<uint32_t>(row));
}

ForwardBatch StepBatch::view(MemoryPools& pools) const {
  return {
      .token_ids = token_ids_, .cu_seqlens = cu_seqlens_, .sequences = sequences_, .logit_rows = logit_rows_, .pools = &pools};
}

}  // namespace kilin

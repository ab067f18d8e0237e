#include "engine/step_batch.h"

#include <algorithm>

namespace kilin {

StepBatch::StepBatch(size_t max_tokens, size_t max_sequences) {
  token_ids_.reserve(max_tokens);
  hidden_rows_.reserve(max_tokens);
  logit_rows_.reserve(max_tokens);
  cu_seqlens_.reserve(max_sequences + 1);
  sequences_.reserve(max_sequences);
  spans_.reserve(max_sequences);
  drawn_.reserve(max_sequences);
  clear();
}

void StepBatch::clear() {
  token_ids_.clear();
  sequences_.clear();
  spans_.clear();
  hidden_rows_.clear();
  logit_rows_.clear();
  drawn_.clear();
  cu_seqlens_.assign(1, 0);
}

void StepBatch::add(const StepSpan& span) {
  const size_t begin = token_ids_.size(), end = begin + span.ids.size();
  const auto index = static_cast<uint32_t>(spans_.size());
  spans_.push_back(span);
  token_ids_.insert(token_ids_.end(), span.ids.begin(), span.ids.end());
  cu_seqlens_.push_back(end);
  sequences_.push_back({.mode = span.mode,
                        .start = span.sequence.tokens(),
                        .state_slot = span.sequence.state.slot(),
                        .pages = span.sequence.pages.pages(),
                        .snapshots = span.snapshots});
  for (size_t row = begin; row < end; ++row) {
    const bool draws = span.draw != nullptr && row + 1 == end;
    const bool wants_logits = draws || span.logits != nullptr;
    if (!wants_logits && span.final_norm != StepSpan::Norm::AllRows) continue;
    if (wants_logits)
      logit_rows_.push_back({.hidden = static_cast<uint32_t>(hidden_rows_.size()), .span = index, .draws = draws});
    hidden_rows_.push_back(static_cast<uint32_t>(row));
  }
  if (span.draw != nullptr) drawn_.emplace_back();
}

size_t StepBatch::hidden_row_of_last(size_t span) const {
  if (cu_seqlens_[span] == cu_seqlens_[span + 1]) return kNoRow;
  const size_t last = cu_seqlens_[span + 1] - 1;
  const auto at = std::ranges::lower_bound(hidden_rows_, last);
  return at != hidden_rows_.end() && *at == last ? static_cast<size_t>(at - hidden_rows_.begin()) : kNoRow;
}

ForwardBatch StepBatch::view(MemoryPools& pools) const {
  return {
      .token_ids = token_ids_, .cu_seqlens = cu_seqlens_, .sequences = sequences_, .logit_rows = hidden_rows_, .pools = &pools};
}

}  // namespace kilin

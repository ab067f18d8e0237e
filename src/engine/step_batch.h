// The arrays behind a ForwardBatch, filled span by span. Their memory is kept from step to step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "model/forward_batch.h"

namespace kilin {

class StepBatch {
 public:
  /// Room for so much, so that a step does not allocate.
  StepBatch(size_t max_tokens, size_t max_sequences);

  void clear();

  /// Adds a span of `ids` that continues `sequence`, whose pages have room for them. Spans and sequence must outlive the step.
  void add(const Sequence& sequence, ForwardMode mode, std::span<const int32_t> ids);

  /// The last added span's last row, or all its rows, want logits.
  void want_last_row();
  void want_all_rows();

  size_t tokens() const { return token_ids_.size(); }
  size_t logit_rows() const { return logit_rows_.size(); }

  /// Valid until the next change.
  ForwardBatch view(MemoryPools& pools) const;

 private:
  std::vector<int32_t> token_ids_;
  std::vector<size_t> cu_seqlens_;
  std::vector<SequenceSpan> sequences_;
  std::vector<uint32_t> logit_rows_;
};

}  // namespace kilin

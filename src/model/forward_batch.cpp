#include "model/forward_batch.h"

#include "core/error.h"
#include "kernels/kda.h"

namespace kilin {

std::string_view to_string(ForwardMode mode) {
  switch (mode) {
    case ForwardMode::Extend:
      return "Extend";
    case ForwardMode::Decode:
      return "Decode";
    case ForwardMode::Idle:
      return "Idle";
    case ForwardMode::TargetVerify:
      return "TargetVerify";
    case ForwardMode::DraftExtend:
      return "DraftExtend";
  }
  return "?";
}

namespace {

void validate_snapshots(const SequenceSpan& span, size_t tokens, const RecurrentStatePool& states, size_t n) {
  if (span.snapshots.size() > kMaxSnapshots)
    raise(ErrorCode::InvalidArgument, "sequence {} of the batch asks for {} snapshots; at most {} are", n,
          span.snapshots.size(), kMaxSnapshots);
  size_t last = span.start;
  for (const SnapshotRequest& request : span.snapshots) {
    if (request.position % kKdaChunk != 0 || request.position <= last || request.position > span.start + tokens)
      raise(ErrorCode::InvalidArgument,
            "sequence {} of the batch: snapshot at position {}; expected ascending multiples of {} in ({}, {}]", n,
            request.position, kKdaChunk, span.start, span.start + tokens);
    if (request.snapshot == nullptr || request.snapshot->values.size() * sizeof(float) != states.bytes_per_slot())
      raise(ErrorCode::InvalidArgument, "sequence {} of the batch: the snapshot at position {} is not one of this pool", n,
            request.position);
    last = request.position;
  }
}

void validate_span(const SequenceSpan& span, size_t tokens, const MemoryPools& pools, size_t n) {
  switch (span.mode) {
    case ForwardMode::Extend:
      break;
    case ForwardMode::Decode:
      if (!span.snapshots.empty()) raise(ErrorCode::InvalidArgument, "sequence {} of the batch: Decode takes no snapshots", n);
      break;
    case ForwardMode::Idle:
      if (tokens != 0)
        raise(ErrorCode::InvalidArgument, "sequence {} of the batch is Idle and has {} tokens; expected 0", n, tokens);
      return;
    case ForwardMode::TargetVerify:
    case ForwardMode::DraftExtend:
      raise(ErrorCode::NotImplemented, "sequence {} of the batch: mode {} is not implemented", n, to_string(span.mode));
  }
  if (tokens == 0) return;
  const size_t room = span.pages.size() * LatentKvPool::kPageTokens;
  if (tokens > room || span.start > room - tokens)
    raise(ErrorCode::InvalidArgument, "sequence {} of the batch has {} tokens from position {}; its {} pages hold {}", n,
          tokens, span.start, span.pages.size(), room);
  for (PageId page : span.pages)
    if (page >= pools.latents.pages())
      raise(ErrorCode::InvalidArgument, "sequence {} of the batch has page {}; the pool has {}", n, page,
            pools.latents.pages());
  if (span.state_slot == RecurrentStatePool::kDummySlot || span.state_slot > pools.states.slots())
    raise(ErrorCode::InvalidArgument, "sequence {} of the batch has {} tokens and state slot {}; expected 1 to {}", n, tokens,
          span.state_slot, pools.states.slots());
  validate_snapshots(span, tokens, pools.states, n);
}

}  // namespace

void ForwardBatch::validate(size_t vocab_size) const {
  if (pools == nullptr) raise(ErrorCode::InvalidArgument, "the batch has no pools");
  if (cu_seqlens.size() != sequences.size() + 1 || cu_seqlens.front() != 0 || cu_seqlens.back() != tokens())
    raise(ErrorCode::InvalidArgument, "cu_seqlens of the batch must have {} entries from 0 to {}", sequences.size() + 1,
          tokens());
  for (size_t n = 0; n < sequences.size(); ++n) {
    if (cu_seqlens[n + 1] < cu_seqlens[n])
      raise(ErrorCode::InvalidArgument, "cu_seqlens of the batch descends at sequence {}", n);
    validate_span(sequences[n], tokens_of(n), *pools, n);
    for (size_t earlier = 0; earlier < n; ++earlier)
      if (tokens_of(n) > 0 && tokens_of(earlier) > 0 && sequences[earlier].state_slot == sequences[n].state_slot)
        raise(ErrorCode::InvalidArgument, "sequences {} and {} of the batch share state slot {}; expected one each", earlier, n,
              sequences[n].state_slot);
  }
  for (size_t row = 0; row < tokens(); ++row)
    if (token_ids[row] < 0 || static_cast<size_t>(token_ids[row]) >= vocab_size)
      raise(ErrorCode::InvalidArgument, "token id {} is outside of the vocabulary: 0 to {}", token_ids[row], vocab_size - 1);
  for (size_t i = 0; i < logit_rows.size(); ++i)
    if (logit_rows[i] >= tokens() || (i > 0 && logit_rows[i] <= logit_rows[i - 1]))
      raise(ErrorCode::InvalidArgument, "logit_rows of the batch must ascend below {}; entry {} is {}", tokens(), i,
            logit_rows[i]);
}

}  // namespace kilin

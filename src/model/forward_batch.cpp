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
  if (span.mode == ForwardMode::Decode && !span.snapshots.empty())
    raise(ErrorCode::InvalidArgument, "sequence {} of the batch: Decode takes no snapshots", n);
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

// @returns whether the span has work
bool validate_mode(const SequenceSpan& span, size_t tokens, size_t n) {
  switch (span.mode) {
    case ForwardMode::Extend:
    case ForwardMode::Decode:
      return tokens > 0;
    case ForwardMode::Idle:
      if (tokens != 0)
        raise(ErrorCode::InvalidArgument, "sequence {} of the batch is Idle and has {} tokens; expected 0", n, tokens);
      return false;
    case ForwardMode::TargetVerify:
    case ForwardMode::DraftExtend:
      raise(ErrorCode::NotImplemented, "sequence {} of the batch: mode {} is not implemented", n, to_string(span.mode));
  }
  raise(ErrorCode::InvalidArgument, "sequence {} of the batch has mode {}, which is none", n, static_cast<int>(span.mode));
}

void validate_state(const SequenceSpan& span, size_t tokens, const RecurrentStatePool& states, size_t n) {
  if (span.state_slot == RecurrentStatePool::kDummySlot || span.state_slot > states.slots())
    raise(ErrorCode::InvalidArgument, "sequence {} of the batch has {} tokens and state slot {}; expected 1 to {}", n, tokens,
          span.state_slot, states.slots());
  validate_snapshots(span, tokens, states, n);
}

void validate_pages(const SequenceSpan& span, size_t tokens, const LatentKvPool& latents, size_t n) {
  const size_t room = span.pages.size() * LatentKvPool::kPageTokens;
  if (tokens > room || span.start > room - tokens)
    raise(ErrorCode::InvalidArgument, "sequence {} of the batch has {} tokens from position {}; its {} pages hold {}", n,
          tokens, span.start, span.pages.size(), room);
  for (PageId page : span.pages)
    if (page >= latents.pages())
      raise(ErrorCode::InvalidArgument, "sequence {} of the batch has page {}; the pool has {}", n, page, latents.pages());
}

// Calls f(span, tokens, n) for every sequence that has work, once the batch is cut into sequences as it should be.
template <typename F>
void for_each_working_span(const ForwardBatch& batch, size_t rows, F&& f) {
  if (batch.pools == nullptr) raise(ErrorCode::InvalidArgument, "the batch has no pools");
  const std::span<const size_t> cu_seqlens = batch.cu_seqlens;
  const size_t sequences = batch.sequences.size();
  if (cu_seqlens.size() != sequences + 1 || cu_seqlens.front() != 0 || cu_seqlens.back() != rows)
    raise(ErrorCode::InvalidArgument, "cu_seqlens of the batch must have {} entries from 0 to {}", sequences + 1, rows);
  for (size_t n = 0; n < sequences; ++n) {
    if (cu_seqlens[n + 1] < cu_seqlens[n])
      raise(ErrorCode::InvalidArgument, "cu_seqlens of the batch descends at sequence {}", n);
    if (validate_mode(batch.sequences[n], batch.tokens_of(n), n)) f(batch.sequences[n], batch.tokens_of(n), n);
  }
}

}  // namespace

void ForwardBatch::validate_states(size_t rows) const {
  for_each_working_span(*this, rows, [&](const SequenceSpan& span, size_t tokens, size_t n) {
    validate_state(span, tokens, pools->states, n);
    for (size_t earlier = 0; earlier < n; ++earlier)
      if (tokens_of(earlier) > 0 && sequences[earlier].state_slot == span.state_slot)
        raise(ErrorCode::InvalidArgument, "sequences {} and {} of the batch share state slot {}; expected one each", earlier, n,
              span.state_slot);
  });
}

void ForwardBatch::validate_latents(size_t rows) const {
  for_each_working_span(
      *this, rows, [&](const SequenceSpan& span, size_t tokens, size_t n) { validate_pages(span, tokens, pools->latents, n); });
}

void ForwardBatch::validate(size_t vocab_size) const {
  validate_states(tokens());
  validate_latents(tokens());
  for (size_t row = 0; row < tokens(); ++row)
    if (token_ids[row] < 0 || static_cast<size_t>(token_ids[row]) >= vocab_size)
      raise(ErrorCode::InvalidArgument, "token id {} is outside of the vocabulary: 0 to {}", token_ids[row], vocab_size - 1);
  for (size_t i = 0; i < logit_rows.size(); ++i)
    if (logit_rows[i] >= tokens() || (i > 0 && logit_rows[i] <= logit_rows[i - 1]))
      raise(ErrorCode::InvalidArgument, "logit_rows of the batch must ascend below {}; entry {} is {}", tokens(), i,
            logit_rows[i]);
}

}  // namespace kilin

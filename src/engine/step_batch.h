// What one step computes: spans of tokens, what is wanted of their rows, and the tokens that were drawn.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/sampler.h"
#include "engine/sequence.h"
#include "model/forward_batch.h"

namespace kilin {

/// Gets logits [R, vocab_size] fp32 of a span's rows, some at a time and in order, and the absolute position of the first. They
/// are valid during the call.
using LogitsSink = std::function<void(size_t position, MatView<const float> logits)>;

/// Tokens that continue one sequence.
struct StepSpan {
  const Sequence& sequence;  ///< its pages have room for `ids`; the step does not touch its ids
  ForwardMode mode;
  std::span<const int32_t> ids;

  const SamplingParams* draw = nullptr;   ///< how a token is drawn after the last row; null: none is
  std::span<const int32_t> history = {};  ///< what that token follows: all of the sequence, `ids` last. Its length keys chance
  const LogitsSink* logits = nullptr;     ///< gets the logits of all rows
  std::span<const SnapshotRequest> snapshots = {};
  enum class Norm : uint8_t { AsNeeded, AllRows } final_norm = Norm::AsNeeded;  ///< which rows pass the final norm
};

/// The arrays behind a ForwardBatch. Their memory is kept from step to step. What spans point to must outlive the step.
class StepBatch {
 public:
  /// Room for so much, so that filling it does not allocate.
  StepBatch(size_t max_tokens, size_t max_sequences);

  void clear();
  void add(const StepSpan& span);

  size_t tokens() const { return token_ids_.size(); }
  std::span<const int32_t> token_ids() const { return token_ids_; }
  /// Of each span that draws, in order, once the step has run: the token, or nothing where no logit was a number.
  std::span<const std::optional<int32_t>> drawn() const { return drawn_; }

 private:
  friend class Runner;

  /// A row that wants logits.
  struct LogitRow {
    uint32_t hidden;  ///< which of the rows that pass the final norm it is
    uint32_t span;
    bool draws;
  };

  static constexpr size_t kNoRow = SIZE_MAX;

  /// Which of the rows that pass the final norm is a span's last; kNoRow if that does not.
  size_t hidden_row_of_last(size_t span) const;

  /// Valid until the next change.
  ForwardBatch view(MemoryPools& pools) const;

  std::vector<int32_t> token_ids_;
  std::vector<size_t> cu_seqlens_;
  std::vector<SequenceSpan> sequences_;
  std::vector<StepSpan> spans_;
  std::vector<uint32_t> hidden_rows_;  // of the batch: those that pass the final norm
  std::vector<LogitRow> logit_rows_;
  std::vector<std::optional<int32_t>> drawn_;
};

}  // namespace kilin

// One step's work: ragged spans of tokens of several sequences, and where their memories are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cache/memory_pools.h"

namespace kilin {

/// The arithmetic that a span of tokens runs in. A token's mode is fixed when it is first processed: the two agree within
/// rounding only, so what was made in one mode is never remade in the other.
enum class ForwardMode : uint8_t {
  Extend,        // prompts: chunk KDA, decompressed MLA
  Decode,        // generation: recurrent KDA, absorbed MLA
  Idle,          // nothing to do on this rank: no tokens, no state touched
  TargetVerify,  // drafts checked by the target model: not implemented
  DraftExtend,   // a draft model's own prefill: not implemented
};

std::string_view to_string(ForwardMode mode);

/// Snapshots that one span may ask for.
inline constexpr size_t kMaxSnapshots = 64;

/// A state snapshot that an Extend span leaves on its way.
struct SnapshotRequest {
  size_t position;          ///< absolute; a multiple of 64 with start < position <= start + tokens
  StateSnapshot* snapshot;  ///< from RecurrentStatePool::blank_snapshot()
};

/// One sequence's part of a batch. Its tokens are rows cu_seqlens[n] .. cu_seqlens[n + 1] of the batch.
struct SequenceSpan {
  ForwardMode mode = ForwardMode::Extend;
  size_t start = 0;  ///< absolute position of its first token = tokens of the sequence that were processed before
  StateSlot state_slot = RecurrentStatePool::kDummySlot;
  std::span<const PageId> pages;                    ///< hold start + tokens positions
  std::span<const SnapshotRequest> snapshots = {};  ///< at most kMaxSnapshots, ascending
};

struct ForwardBatch {
  std::span<const int32_t> token_ids;       ///< [T]
  std::span<const size_t> cu_seqlens;       ///< [N + 1], from 0 to T, not descending
  std::span<const SequenceSpan> sequences;  ///< [N]
  std::span<const uint32_t> logit_rows;     ///< rows whose final hidden state is wanted, ascending
  MemoryPools* pools = nullptr;

  size_t tokens() const { return token_ids.size(); }
  size_t tokens_of(size_t n) const { return cu_seqlens[n + 1] - cu_seqlens[n]; }

  /// @throws InvalidArgument if the parts contradict each other or the pools, if two sequences with tokens share a state, or if
  /// an id is outside of the vocabulary; NotImplemented for the modes of speculative decoding
  void validate(size_t vocab_size) const;

  /// The parts of it that a layer's memory rests on. A layer that runs alone checks them itself before anything moves: what
  /// they refuse would spoil some sequence's past without a word. They look at no token.
  /// @param rows that the layer was given
  void validate_states(size_t rows) const;   ///< cu_seqlens, modes, slots, snapshots: of layers with recurrent states
  void validate_latents(size_t rows) const;  ///< cu_seqlens, modes, pages: of layers with latents
};

}  // namespace kilin

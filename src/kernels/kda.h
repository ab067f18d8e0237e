// Kimi Delta Attention: the gated delta rule of one head, in chunks (Extend) or token by token (Decode).
#pragma once

#include <cstddef>
#include <span>

#include "core/mat_view.h"

namespace kilin {

/// Chunks end at multiples of this many tokens, counted from the sequence's first token.
inline constexpr size_t kKdaChunk = 64;

/// States are stored in panels of this many value channels: [ceil(V / 16)][K][16] a head, missing channels zero.
inline constexpr size_t kKdaPanel = 16;

/// Floats of one head's state. A head of 128 x 128 is 64 KB.
constexpr size_t kda_state_floats(size_t key_dim, size_t value_dim) {
  return (value_dim + kKdaPanel - 1) / kKdaPanel * kKdaPanel * key_dim;
}

/// The index of element (k, v) of a head's [K, V] state in its panels.
constexpr size_t kda_state_index(size_t key_dim, size_t k, size_t v) {
  return (v / kKdaPanel * key_dim + k) * kKdaPanel + v % kKdaPanel;
}

/// A copy of the state that chunk_kda shall make when it reaches a position.
struct KdaSnapshot {
  size_t position;  ///< absolute; a multiple of kKdaChunk with start < position <= start + T
  float* state;     ///< kda_state_floats(K, V) floats: the state after all tokens before `position`
};

/// One head of one sequence. For every token t:
///   S = diag(exp(g_t)) S;   S += k_t (beta_t (v_t - S^T k_t))^T;   o_t = S^T q_t
/// (the state first decays, then is corrected, then read: Kimi Linear, section 3; golden/README.md, section 1).
///
/// T = 0 leaves `state` unchanged, bit for bit. K and V may be any sizes, equal or not.
struct KdaHead {
  MatView<const float> q;  ///< [T, K] after l2_norm, scaled by K^-0.5
  MatView<const float> k;  ///< [T, K] after l2_norm
  MatView<const float> v;  ///< [T, V]
  MatView<const float> g;  ///< [T, K] log decay, <= 0; only products of exp(g) are formed, never exp of a positive number
  const float* beta;       ///< [T] with stride beta_stride
  size_t beta_stride;
  size_t start;        ///< absolute position of the first token: fixes the grid, so that a cut at a multiple of 64 changes
                       ///< no byte. The recurrent form ignores it.
  float* state;        ///< panels, in and out
  MatView<float> out;  ///< [T, V]
  std::span<const KdaSnapshot> snapshots = {};  ///< ascending; the recurrent form takes none
};

/// Floats of scratch that each kernel needs for one head.
size_t chunk_kda_scratch(size_t key_dim, size_t value_dim);
size_t fused_recurrent_kda_scratch(size_t key_dim, size_t value_dim);

}  // namespace kilin

// How much of the workspace a forward pass takes: found by running the pass itself, not by adding up a second list of its
// matrices.
#pragma once

#include <functional>
#include <optional>

#include "model/kimi_linear_for_causal_lm.h"

namespace kilin {

/// The most that `pass` takes from the workspace of the context that it is given, in bytes. The pass runs with a workspace that
/// has no memory and a pool of so many threads that skips every loop. So it takes all that it would take, touches none of it,
/// and computes nothing: whatever reads or writes values must be in a loop of ctx.pool.
size_t dry_run(size_t threads, ActivationType activations, const std::function<void(ExecContext&)>& pass);

/// Bounds of the batches that a model is to run.
struct PassSize {
  size_t tokens;      ///< of a batch, at most
  size_t logit_rows;  ///< of one call of KimiLinearForCausalLM::logits, at most
  size_t threads;
  std::optional<ActivationType> activations = {};  ///< unset: whichever takes most
};

/// The most that forward and logits take from the workspace: what the largest batch takes in the mode that takes most. Smaller
/// batches, and those that mix modes, take no more.
size_t workspace_bytes(const KimiLinearForCausalLM& model, const PassSize& size);

}  // namespace kilin

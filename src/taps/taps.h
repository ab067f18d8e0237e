// Where a caller can read and change values inside the forward pass.
#pragma once

#include <span>

#include "core/tensor.h"
#include "taps/names.h"

namespace kilin {

/// Called by the thread that runs the step, where the model is about to use each value. The model goes on with what a tap
/// writes into `values`, unless value_info says that the value is not writable. Without taps the pass pays one pointer test per
/// value. An exception from a tap ends the pass.
class Taps {
 public:
  virtual ~Taps() = default;

  /// @param values [rows of the batch, ...], f32 or i32 by the value; valid during the call only, maybe with a row stride
  virtual void at(const Site& site, TensorView values) = 0;

  /// Whether to show the value. Asked once per layer and step, as late as possible, and only about values that cost something
  /// to show: those that a staged path computes, and those of single sequences. All others are always shown.
  virtual bool wants(const Site& site) {
    static_cast<void>(site);
    return false;
  }

  /// Like `at`, for values that are not rows of the batch: attention queries, keys, values, scores and probabilities of MLA by
  /// head, states. Called only if wants() is true.
  /// @param parts one for each sequence of the batch, in its order; its data is null if the sequence has no tokens. The
  /// state_input of a fresh sequence is zeros
  virtual void at_sequences(const Site& site, std::span<const TensorView> parts) {
    static_cast<void>(site);
    static_cast<void>(parts);
  }
};

}  // namespace kilin

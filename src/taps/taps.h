// Where a caller may look into the forward pass, and reach in.
#pragma once

#include <span>

#include "core/tensor.h"
#include "taps/names.h"

namespace kilin {

/// Called by the thread that runs the step, at each value's true point of use. What a tap writes into `values` is what the
/// model goes on with, but for those that value_info calls not writable. With no taps attached the pass pays one pointer test a
/// value. What a tap throws ends the pass.
class Taps {
 public:
  virtual ~Taps() = default;

  /// @param values [rows of the batch, ...], f32 or i32 by the value; valid during the call only, maybe with a row stride
  virtual void at(const Site& site, TensorView values) = 0;

  /// Whether the value shall be shown. Asked once a layer and step, as late as the answer can still matter, about values that
  /// cost something to show: those that a staged path forms, and those of single sequences. All others are shown unasked.
  virtual bool wants(const Site& site) {
    static_cast<void>(site);
    return false;
  }

  /// As `at`, for values that have no rows of the batch: attention queries, keys, values, scores and probabilities of MLA by
  /// head, states. Only if wanted.
  /// @param parts one for each sequence of the batch, in its order; with no data (null) where the sequence has no tokens. The
  /// state_input of a fresh sequence is zeros
  virtual void at_sequences(const Site& site, std::span<const TensorView> parts) {
    static_cast<void>(site);
    static_cast<void>(parts);
  }
};

}  // namespace kilin

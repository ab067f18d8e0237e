// Where a caller may look into the forward pass, and reach in.
#pragma once

#include "core/tensor.h"
#include "trace/names.h"

namespace kilin {

/// Called by the thread that runs the step, at each value's true point of use. What a tap writes into `values` is what the
/// model goes on with. With no taps attached the pass pays one pointer test a value.
class Taps {
 public:
  virtual ~Taps() = default;

  /// @param values [rows, ...], f32 or i32 by the value; valid during the call only, maybe with a row stride
  virtual void at(const Site& site, TensorView values) = 0;
};

}  // namespace kilin

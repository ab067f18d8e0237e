// One value of the forward pass, by prompt, as a trace hands it out.
#pragma once

#include <span>

#include "core/tensor.h"
#include "taps/names.h"

namespace kilin {

/// A point of a trace: a value of one step.
struct Moment {
  size_t step = 0;
  Site site{};
  friend bool operator==(const Moment&, const Moment&) = default;
};

/// Whether a trace comes to `a` before it comes to `b`.
inline bool passes_before(const Moment& a, const Moment& b) {
  return a.step != b.step ? a.step < b.step : passes_before(a.site, b.site);
}

/// A value at its point of use, in the model's own memory. Valid while the pass waits there.
class TracedValue {
 public:
  TracedValue(const Moment& moment, std::span<const TensorView> prompts) : moment_(moment), prompts_(prompts) {}

  const Moment& moment() const { return moment_; }
  size_t prompts() const { return prompts_.size(); }
  /// Whether the model goes on with what is written here.
  bool is_writable() const { return value_info(moment_.site.value).writable; }

  /// Whether this is the state_input before the prompts' first token, when there is no state yet. `of` gives zeros, and prompts
  /// begin with the state that is written there.
  bool is_blank() const { return moment_.site.value == Value::StateInput && moment_.step == 0; }
  /// The part of one prompt, in the shape that `support` tells; f32, or i32 for ids and indices. Maybe with strides.
  TensorView of(size_t prompt) const { return prompts_[prompt]; }

 private:
  Moment moment_;
  std::span<const TensorView> prompts_;
};

}  // namespace kilin

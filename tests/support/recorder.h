// A tap that keeps the values that it is shown.
#pragma once

#include <map>
#include <vector>

#include "taps/taps.h"

namespace kilin::testing {

/// Copies of the values that a forward pass shows, rows without gaps; ids of experts as floats.
class Recorder final : public Taps {
 public:
  void at(const Site& site, TensorView v) override {
    std::vector<float>& out = values_[{site.layer, site.value}];
    const size_t inner = v.shape().rank() == 3 ? v.shape()[2] : 1;
    for (size_t r = 0; r < v.shape()[0]; ++r)
      for (size_t c = 0; c < v.shape()[1]; ++c)
        for (size_t i = 0; i < inner; ++i) {
          const size_t at = r * v.stride(0) + c * v.stride(1) + i * v.stride(2);
          out.push_back(v.dtype() == DType::i32 ? static_cast<float>(v.as<int32_t>()[at]) : v.as<float>()[at]);
        }
  }

  /// All values shown under this name, in order. @throws std::out_of_range for what was not shown
  const std::vector<float>& values(Value value, int layer = Site::kModel) const { return values_.at({layer, value}); }

 private:
  std::map<std::pair<int, Value>, std::vector<float>> values_;
};

}  // namespace kilin::testing

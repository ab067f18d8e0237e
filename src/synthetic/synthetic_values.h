// Random weights: every value is a function of (seed, name of its tensor, index), so that neither threads nor the order of
// writing can change a byte. The scales are those at which training starts, so that magnitudes are those of a real model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weights/weight_map.h"

namespace kilin {

/// The distribution of a tensor's values.
struct SyntheticDistribution {
  enum class Kind : uint8_t {
    Normal,           ///< mean `a`, standard deviation `b`; never beyond 3.5 deviations
    Uniform,          ///< in [a, b)
    LogOfUniform,     ///< log(u), u uniform in [a, b), a > 0: A_log
    SoftplusInverse,  ///< y with softplus(y) = exp(u), u uniform in [log a, log b), 0 < a <= b <= 1: dt_bias
  };
  Kind kind;
  double a, b;
};

/// Linears N(0, 1/sqrt(in)), norms N(1, 0.1), convolutions of width W uniform within 1/sqrt(W); A_log and dt_bias as KDA's
/// authors start them: decay rates 1 to 16, time steps log-uniform from 0.001 to 0.1; the router's bias N(0, 0.01).
/// @throws NotImplemented for a tensor of the table that is not covered here
SyntheticDistribution distribution_of(const ExpectedTensor& tensor, const ModelConfig& config);

/// The key of one tensor's values.
uint64_t synthetic_key(uint64_t seed, std::string_view name);

/// values[i] gets the tensor's value of index `first` + i. Uses only exact or once-rounded operations and no libm, so that it
/// gives the same values on every machine.
void fill_synthetic(const SyntheticDistribution& distribution, uint64_t key, size_t first, std::span<float> values);

}  // namespace kilin

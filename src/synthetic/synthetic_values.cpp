#include "synthetic/synthetic_values.h"

#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace kilin {

namespace {

// exp(x) for |x| <= 40: the power series of x / 64, squared six times.
double exponential(double x) {
  const double y = x / 64;
  double sum = 1, term = 1;
  for (int n = 1; n <= 20; ++n) {
    term *= y / n;
    sum += term;
  }
  for (int n = 0; n < 6; ++n) sum *= sum;
  return sum;
}

// log(x) for normal x > 0: x = m 2^e with m near 1, log m = 2 artanh((m - 1) / (m + 1)).
double logarithm(double x) {
  constexpr double kLog2 = 0.693147180559945309417;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.70710678) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int n = 25; n >= 1; n -= 2) sum = sum * s2 + 1.0 / n;
  return 2 * s * sum + exponent * kLog2;
}

// y with log(1 + exp(y)) = t: y = t + log(1 - exp(-t)). The series keeps the digits of 1 - exp(-t) for small t.
double softplus_inverse(double t) {
  double sum = 0;
  for (int n = 20; n >= 1; --n) sum = (1 - sum) * (t / n);
  return t + logarithm(sum);
}

// The sum of four uniform numbers of 16 bits: near enough to a normal distribution (its fourth moment is 2.7 of 3), and one
// draw a value.
void fill_normal(double mean, double deviation, uint64_t key, size_t first, std::span<float> values) {
  constexpr double kDeviation = 37837.22717;  // of the sum: sqrt(4 (2^32 - 1) / 12)
  const auto scale = static_cast<float>(deviation / kDeviation);
  const auto offset = static_cast<float>(mean);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = random_bits(key, first + i);
    const auto sum = static_cast<int32_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48));
    values[i] = static_cast<float>(sum - 2 * 65535) * scale + offset;
  }
}

double draw(const SyntheticDistribution& d, double uniform) {
  using Kind = SyntheticDistribution::Kind;
  switch (d.kind) {
    case Kind::LogOfUniform:
      return logarithm(d.a + (d.b - d.a) * uniform);
    case Kind::SoftplusInverse: {
      const double low = logarithm(d.a), high = logarithm(d.b);
      return softplus_inverse(exponential(low + (high - low) * uniform));
    }
    case Kind::Normal:
    case Kind::Uniform:
      break;
  }
  return d.a + (d.b - d.a) * uniform;
}

}  // namespace

SyntheticDistribution distribution_of(const ExpectedTensor& tensor, const ModelConfig& config) {
  using Kind = SyntheticDistribution::Kind;
  const std::string_view pattern = tensor.pattern->pattern;
  const Shape& shape = tensor.shape;
  const auto one_by_root = [](size_t n) { return 1 / std::sqrt(static_cast<double>(n)); };
  if (pattern.ends_with(".A_log")) return {Kind::LogOfUniform, 1, 16};
  if (pattern.ends_with(".dt_bias")) return {Kind::SoftplusInverse, 1e-3, 0.1};
  if (pattern.ends_with(".e_score_correction_bias")) return {Kind::Normal, 0, 0.01};
  if (pattern.ends_with("norm.weight")) return {Kind::Normal, 1, 0.1};
  if (pattern.ends_with("conv1d.weight") && shape.rank() == 3) {
    const double bound = one_by_root(shape[2]);
    return {Kind::Uniform, -bound, bound};
  }
  // The embedding starts the stream at the magnitude that layers add to it; if it is also the lm_head, it is scaled as a
  // linear.
  if (pattern == "model.embed_tokens.weight" && !config.tie_word_embeddings) return {Kind::Normal, 0, 1};
  if (shape.rank() == 2) return {Kind::Normal, 0, one_by_root(shape[1])};
  raise(ErrorCode::NotImplemented, "tensor '{}': there is no rule for its random values", tensor.name);
}

uint64_t synthetic_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return random_bits(seed, hash);
}

void fill_synthetic(const SyntheticDistribution& distribution, uint64_t key, size_t first, std::span<float> values) {
  if (distribution.kind == SyntheticDistribution::Kind::Normal)
    return fill_normal(distribution.a, distribution.b, key, first, values);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(draw(distribution, random_uniform(key, first + i)));
}

}  // namespace kilin

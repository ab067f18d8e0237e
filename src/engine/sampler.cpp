#include "engine/sampler.h"

#include <cassert>
#include <cmath>

#include "core/error.h"
#include "core/float_mode.h"
#include "core/thread_pool.h"
#include "engine/row_sampler.h"

namespace kilin {

void SamplingParams::validate(const Names& names) const {
  const auto require = [](bool holds, const char* name, double value, const char* expected) {
    if (!holds) raise(ErrorCode::InvalidArgument, "{} is {}; expected {}", name, value, expected);
  };
  require(repetition_penalty > 0 && std::isfinite(repetition_penalty), names.repetition_penalty, repetition_penalty,
          "a number above 0");
  require(temperature >= 0 && std::isfinite(temperature), names.temperature, temperature, "0 or a number above it");
  require(top_p > 0 && top_p <= 1, names.top_p, top_p, "above 0, at most 1");
  require(min_p >= 0 && min_p <= 1, names.min_p, min_p, "0 to 1");
}

Sampler::Sampler(const KernelTable& kernels, size_t vocab_size, size_t workers) {
  workers_.reserve(workers);
  for (size_t i = 0; i < workers; ++i) workers_.emplace_back(kernels, vocab_size);
}

Sampler::~Sampler() = default;

void Sampler::sample(ThreadPool& pool, std::span<SampleRow> rows) {
  assert(pool.size() <= workers_.size());
  pool.parallel_for(rows.size(), 1, [&](const Slice& slice) {
    for (size_t i = slice.begin; i < slice.end; ++i) rows[i].id = workers_[slice.worker].sample(rows[i]);
  });
}

std::optional<int32_t> Sampler::sample(std::span<float> logits, const SamplingParams& params, std::span<const int32_t> history,
                                       uint64_t position) {
  const FloatModeGuard float_mode;  // as the threads of a pool have it
  return workers_[0].sample({logits, &params, history, position});
}

}  // namespace kilin

// Draws one row's token, with the scratch memory that it takes: what each thread of a Sampler has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/candidates.h"
#include "engine/logit_buckets.h"
#include "engine/sampler.h"

namespace kilin {

class RowSampler {
 public:
  RowSampler(const KernelTable& kernels, size_t vocab_size);

  /// As SampleRow says; does not look at `id`.
  std::optional<int32_t> sample(const SampleRow& row);

 private:
  void penalize(std::span<float> logits, double penalty, std::span<const int32_t> history);
  std::optional<int32_t> draw_from_all(std::span<const float> logits, float scale, double uniform);
  std::optional<int32_t> draw_from_best(std::span<const float> logits, float scale, const SamplingParams& params,
                                        double uniform);
  std::optional<int32_t> draw_from_top_k(std::span<const float> logits, float scale, const SamplingParams& params,
                                         double uniform);
  int32_t draw_from_candidates(size_t count, double left);
  int32_t draw_from_buckets(std::span<const float> logits, const LogitWeights& weights, const SamplingParams& params,
                            double total, double uniform);

  const KernelTable& kernels_;
  std::vector<uint64_t> seen_;  // a bit an id, for the repetition penalty; all zero between calls
  std::vector<float> block_;
  Candidates candidates_;
  LogitBuckets buckets_;
};

}  // namespace kilin

// Walks through a row of logits from the best one downwards without sorting them: how top-p keeps most of a vocabulary.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/candidates.h"

namespace kilin {

/// Divides the range of the logits into buckets, with the number and the weight of the ids in each. A walk goes from bucket to
/// bucket, and looks into the one in which it ends. Sums are made within a bucket in the order of the ids, then from bucket to
/// bucket: what comes out is a function of the row alone. Does not allocate after construction.
class LogitBuckets {
 public:
  explicit LogitBuckets(const KernelTable& kernels);

  /// @param row what later walks go through; must stay. No NaN, and weights.max is the largest and finite
  /// @param least_weight ids that weigh less need not be counted; those that weigh nothing never are: nobody draws them
  void weigh(std::span<const float> row, const LogitWeights& weights, double least_weight);

  /// @param candidates scratch
  Walk walk(const WalkEnd& end, Candidates& candidates);

 private:
  static constexpr size_t kBuckets = 1024;
  static constexpr size_t kBlock = 1024;  // logits that become weights at a time

  struct Bucket {
    double mass;
    uint32_t count;
    float least_weight;
  };
  /// Buckets for the logits from `least` to `most`, both included, the largest first.
  struct Range {
    float least;
    float most;
    double buckets_per_unit;
    std::array<Bucket, kBuckets> buckets;

    // Where a logit stands, in buckets; never less for a smaller logit, whatever the rounding. In double, where no difference
    // of floats overflows or vanishes.
    double place_of(float logit) const { return (static_cast<double>(most) - static_cast<double>(logit)) * buckets_per_unit; }
  };

  void divide(Range& range, float least, float most);
  static size_t find_end(const Range& range, const WalkEnd& end, Walk& walk);
  bool gather(const Range& range, size_t bucket, Candidates& candidates, float& least, float& most) const;
  Walk walk_equals(float logit, Walk walk, const WalkEnd& end) const;

  const KernelTable& kernels_;
  std::span<const float> row_;
  LogitWeights how_{};
  std::vector<float> weights_;      // [kBlock]
  std::vector<int32_t> bucket_of_;  // [kBlock], -1 outside of the range
  std::vector<uint32_t> inside_;    // [kBlock], indices of those that are not
  std::vector<Range> ranges_;       // the row's, then that of the bucket in which a walk looks
};

}  // namespace kilin

// A few of a row's logits, best first: the larger one, of equals the one with the lower id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel_table.h"

namespace kilin {

/// How a logit becomes a weight: exp((logit - max) * scale), a probability times a constant; the best one's is 1.
struct LogitWeights {
  float max;
  float scale;  ///< 1 / temperature

  /// A finite logit that weighs a little less than `weight`, so that whatever weighs as much or more is above it.
  float logit_of(double weight) const;
};

/// Where a walk from the best candidate downwards ends: with the one that makes it `count` candidates or brings their weights
/// to `mass`, or before the first whose weight is below `least_weight`.
struct WalkEnd {
  size_t count;
  double mass;
  double least_weight = 0;
};

/// How far a walk came.
struct Walk {
  size_t count = 0;
  double mass = 0;    ///< sum of the weights
  int32_t last = -1;  ///< id of the last one, -1 if there is none
  bool ended = false;
};

/// Holds up to kMost candidates in memory taken at construction. Sorts no further than it is asked for.
class Candidates {
 public:
  static constexpr size_t kMost = 4096;

  explicit Candidates(const KernelTable& kernels);

  void clear();
  bool full() const { return keys_.size() == kMost; }
  size_t size() const { return keys_.size(); }
  /// @pre !full()
  void add(float logit, size_t id);

  /// What take_best came to.
  enum class Taken {
    All,   ///< every logit of the row that is above the bound
    Best,  ///< the best `wanted` of them, as there are more
    Nan,   ///< it met a NaN, and what it holds is of no use
  };

  /// Holds the best `wanted` of the row's logits above `bound` afterwards, or all, if there are no more. It reads the row once
  /// and keeps aside only what is better than the worst of the best so far. @pre 0 < wanted <= kMost / 2
  Taken take_best(std::span<const float> row, size_t wanted, float bound);

  int32_t id(size_t rank);
  float logit(size_t rank);

  /// What the logits of all further walks weigh.
  void set_weights(const LogitWeights& weights);
  double weight(size_t rank);

  /// Goes on from `before`, what better candidates than these have made, until `end` or the last candidate.
  Walk walk(Walk before, const WalkEnd& end);

 private:
  void keep_best(size_t wanted);
  void sort_past(size_t rank);

  const KernelTable& kernels_;
  LogitWeights how_{};
  std::vector<uint64_t> keys_;  // logit and id, in an order of integers
  size_t sorted_ = 0;           // so many of keys_ are in their place, best first
  std::vector<float> weights_;  // of the first weighed_ of keys_
  size_t weighed_ = 0;
};

}  // namespace kilin

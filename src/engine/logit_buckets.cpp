#include "engine/logit_buckets.h"

#include <algorithm>
#include <limits>

#include "engine/logit_scan.h"

namespace kilin {

LogitBuckets::LogitBuckets(const KernelTable& kernels)
    : kernels_(kernels), weights_(kBlock), bucket_of_(kBlock), inside_(kBlock), ranges_(2) {}

void LogitBuckets::weigh(std::span<const float> row, const LogitWeights& weights, double least_weight) {
  row_ = row;
  how_ = weights;
  const float floor = weights.logit_of(least_weight);
  float least = weights.max;
  for (size_t i = 0;; ++i) {
    i = next_where(row, i, [&](float x) { return static_cast<int>(x < least) & static_cast<int>(x >= floor); });
    if (i >= row.size()) break;
    least = row[i];
  }
  divide(ranges_[0], least, weights.max);
}

void LogitBuckets::divide(Range& range, float least, float most) {
  const double width = static_cast<double>(most) - static_cast<double>(least);
  range.least = least;
  range.most = most;
  range.buckets_per_unit = width > 0 ? static_cast<double>(kBuckets - 1) / width : 0;
  range.buckets.fill({0, 0, std::numeric_limits<float>::infinity()});
  for (size_t begin = 0; begin < row_.size(); begin += kBlock) {
    const auto block = row_.subspan(begin, std::min(kBlock, row_.size() - begin));
    kernels_.exp_shifted(block.data(), block.size(), how_.max, how_.scale, weights_.data());
    // Apart from the sums, and without a branch, so that a compiler makes vector instructions of it.
    int32_t inside = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      const double place = range.place_of(block[i]);
      const auto bucket = static_cast<int32_t>(place < kBuckets ? place : double{kBuckets});
      const int32_t is_inside = static_cast<int32_t>(block[i] >= least) & static_cast<int32_t>(block[i] <= most);
      bucket_of_[i] = is_inside != 0 ? bucket : -1;
      inside += is_inside;
    }
    const auto count = [&](size_t i) {
      Bucket& bucket = range.buckets[static_cast<size_t>(bucket_of_[i])];
      bucket.mass += static_cast<double>(weights_[i]);
      ++bucket.count;
      if (weights_[i] < bucket.least_weight) bucket.least_weight = weights_[i];
    };
    if (static_cast<size_t>(inside) == block.size()) {
      for (size_t i = 0; i < block.size(); ++i) count(i);
      continue;
    }
    // Nothing can foresee which ones are inside: they are listed without a branch, too.
    size_t listed = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      inside_[listed] = static_cast<uint32_t>(i);
      listed += bucket_of_[i] >= 0 ? 1 : 0;
    }
    for (size_t i = 0; i < listed; ++i) count(inside_[i]);
  }
}

// The bucket in which the walk ends, the last one with anything in it if there is none; `walk` goes through those before it.
size_t LogitBuckets::find_end(const Range& range, const WalkEnd& end, Walk& walk) {
  size_t found = 0;
  Walk before = walk;
  for (size_t b = 0; b < kBuckets; ++b) {
    const Bucket& bucket = range.buckets[b];
    if (bucket.count == 0) continue;
    found = b;
    walk = before;
    before.count += bucket.count;
    before.mass += bucket.mass;
    if (before.count >= end.count || before.mass >= end.mass || static_cast<double>(bucket.least_weight) < end.least_weight)
      break;
  }
  return found;
}

// Puts what is in the bucket into `candidates`. @returns false if it is too much; its range is in `least` and `most` then
bool LogitBuckets::gather(const Range& range, size_t bucket, Candidates& candidates, float& least, float& most) const {
  candidates.clear();
  candidates.set_weights(how_);
  least = range.most;
  most = range.least;
  // The bucket's edges, a little too far apart, since they are rounded: then each value is asked for its bucket.
  const auto edge = [&](double b) {
    if (range.buckets_per_unit == 0) return static_cast<double>(range.most);
    return std::clamp(static_cast<double>(range.most) - b / range.buckets_per_unit, static_cast<double>(range.least),
                      static_cast<double>(range.most));
  };
  const auto upper = static_cast<float>(edge(static_cast<double>(bucket) - 0.01));
  const auto lower = static_cast<float>(edge(static_cast<double>(bucket) + 1.01));
  const bool fits = range.buckets[bucket].count <= Candidates::kMost;
  const auto inside = [&](float x) { return static_cast<int>(x >= lower) & static_cast<int>(x <= upper); };
  for (size_t i = 0; (i = next_where(row_, i, inside)) < row_.size(); ++i) {
    const float x = row_[i];
    if (static_cast<size_t>(range.place_of(x)) != bucket) continue;
    least = std::min(least, x);
    most = std::max(most, x);
    if (fits) candidates.add(x, i);
  }
  return fits;
}

// Through ids whose logits are all the same: too many to put them aside, and in order as they are.
Walk LogitBuckets::walk_equals(float logit, Walk walk, const WalkEnd& end) const {
  float weight = 0;
  kernels_.exp_shifted(&logit, 1, how_.max, how_.scale, &weight);
  if (static_cast<double>(weight) < end.least_weight) return walk;
  for (size_t i = 0; (i = next_where(row_, i, [logit](float x) { return x == logit; })) < row_.size(); ++i) {
    ++walk.count;
    walk.mass += static_cast<double>(weight);
    walk.last = static_cast<int32_t>(i);
    if (walk.count >= end.count || walk.mass >= end.mass) break;
  }
  return walk;
}

Walk LogitBuckets::walk(const WalkEnd& end, Candidates& candidates) {
  Walk walk;
  for (const Range* range = ranges_.data();;) {
    const size_t bucket = find_end(*range, end, walk);
    float least = 0, most = 0;
    if (gather(*range, bucket, candidates, least, most)) return candidates.walk(walk, end);
    if (least == most) return walk_equals(least, walk, end);
    divide(ranges_[1], least, most);  // the largest and the least get buckets of their own: there is an end to it
    range = &ranges_[1];
  }
}

}  // namespace kilin

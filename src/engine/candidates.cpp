#include "engine/candidates.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/logit_scan.h"

namespace kilin {

namespace {

// A key is larger where its candidate is better. Floats as sign and magnitude are in the order of integers once the negative
// ones' bits are flipped; adding 0 makes one zero of two.
uint64_t key_of(float logit, size_t id) {
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);
  const uint32_t order = bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
  return uint64_t{order} << 32 | (0xffffffffu - static_cast<uint32_t>(id));
}

float logit_of(uint64_t key) {
  const auto order = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>(order ^ (order >> 31 != 0 ? 0x80000000u : 0xffffffffu));
}

int32_t id_of(uint64_t key) { return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key)); }

}  // namespace

float LogitWeights::logit_of(double weight) const {
  constexpr double kNoWeight = 105;  // e^-105 is 0 as a float
  const double below = weight > 0 ? std::min(0.001 - std::log(weight), kNoWeight) : kNoWeight;
  const double logit = static_cast<double>(max) - below / static_cast<double>(scale);
  // Rounding must not bring it up to what it is to be below.
  const auto least = static_cast<double>(std::numeric_limits<float>::lowest());
  return std::nextafter(static_cast<float>(std::max(logit, least)), std::numeric_limits<float>::lowest());
}

Candidates::Candidates(const KernelTable& kernels) : kernels_(kernels), weights_(kMost) { keys_.reserve(kMost); }

void Candidates::clear() {
  keys_.clear();
  sorted_ = weighed_ = 0;
}

void Candidates::add(float logit, size_t id) {
  assert(!full());
  keys_.push_back(key_of(logit, id));
}

void Candidates::keep_best(size_t wanted) {
  std::nth_element(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(wanted - 1), keys_.end(), std::greater<>());
  keys_.resize(wanted);
}

Candidates::Taken Candidates::take_best(std::span<const float> row, size_t wanted, float bound) {
  clear();
  Taken taken = Taken::All;
  const auto drop_rest = [&] {
    if (size() <= wanted) return;
    taken = Taken::Best;
    keep_best(wanted);
    bound = logit_of(keys_[wanted - 1]);  // ids ascend, so that what equals it is no better
  };
  for (size_t i = 0; (i = next_above(row, i, bound)) < row.size(); ++i) {
    if (std::isnan(row[i])) return Taken::Nan;
    add(row[i], i);
    if (size() == 2 * wanted) drop_rest();
  }
  drop_rest();
  return taken;
}

// Sorted in growing parts, since a few candidates usually do.
void Candidates::sort_past(size_t rank) {
  if (rank < sorted_) return;
  const size_t target = std::min(std::max({size_t{64}, 4 * sorted_, rank + 1}), keys_.size());
  const auto from = keys_.begin() + static_cast<std::ptrdiff_t>(sorted_);
  const auto to = keys_.begin() + static_cast<std::ptrdiff_t>(target);
  if (to != keys_.end()) std::nth_element(from, to, keys_.end(), std::greater<>());
  std::sort(from, to, std::greater<>());
  sorted_ = target;
}

int32_t Candidates::id(size_t rank) {
  sort_past(rank);
  return id_of(keys_[rank]);
}

float Candidates::logit(size_t rank) {
  sort_past(rank);
  return logit_of(keys_[rank]);
}

void Candidates::set_weights(const LogitWeights& weights) {
  how_ = weights;
  weighed_ = 0;
}

double Candidates::weight(size_t rank) {
  if (rank >= weighed_) {
    sort_past(rank);
    for (size_t i = weighed_; i < sorted_; ++i) weights_[i] = logit_of(keys_[i]);
    float* fresh = weights_.data() + weighed_;
    kernels_.exp_shifted(fresh, sorted_ - weighed_, how_.max, how_.scale, fresh);
    weighed_ = sorted_;
  }
  return double{weights_[rank]};
}

Walk Candidates::walk(Walk before, const WalkEnd& end) {
  for (size_t rank = 0; rank < size(); ++rank) {
    const double w = weight(rank);
    if (w < end.least_weight) {
      before.ended = true;
      return before;
    }
    before.mass += w;
    before.last = id(rank);
    ++before.count;
    if (before.count >= end.count || before.mass >= end.mass) {
      before.ended = true;
      return before;
    }
  }
  return before;
}

}  // namespace kilin

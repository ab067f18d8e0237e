// Softmaxes in parts, and the sums that sampling needs.

struct MergeOut {
  const float* from;
  float keep, take;
  float* into;
  void operator()(size_t i, size_t n) const {
    store_up_to(into + i, fma(load_up_to(from + i, n), splat(take), load_up_to(into + i, n) * splat(keep)), n);
  }
};

void softmax_merge(const SoftmaxPartial& from, const SoftmaxPartial& into, size_t n) noexcept {
  if (*from.max == kMinusInfinity) return;
  const MergeWeights weights = merge_scalars(*into.max, *into.sum, *from.max, *from.sum);
  for_each_vector(n, MergeOut{from.out, weights.keep, weights.take, into.out});
}

struct DivideBy {
  float divisor;
  float* x;
  void operator()(size_t i, size_t n) const { store_up_to(x + i, load_up_to(x + i, n) / splat(divisor), n); }
};

void softmax_finish(const SoftmaxPartial& partial, size_t n) noexcept {
  if (*partial.sum == 0) return;
  for_each_vector(n, DivideBy{*partial.sum, partial.out});
}

void max_and_exp_sum(const float* x, size_t n, float scale, float& max_out, double& sum_out) noexcept {
  Vec most = splat(kMinusInfinity);
  size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) most = max(most, load(x + i));
  if (i < n) most = select(lanes_below(n - i), max(most, load_first(x + i, n - i)), most);
  max_out = max_lane(most);

  constexpr size_t kBlock = 1024;  // fp32 within a block, double from block to block
  sum_out = 0;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, n);
    Vec sum = zero();
    for (i = begin; i + kWidth <= end; i += kWidth) sum = sum + exp((load(x + i) - splat(max_out)) * splat(scale));
    if (i < end) {
      const Vec e = exp((load_first(x + i, end - i) - splat(max_out)) * splat(scale));
      sum = sum + select(lanes_below(end - i), e, zero());
    }
    sum_out += static_cast<double>(sum_lanes(sum));
  }
}

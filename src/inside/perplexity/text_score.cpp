#include "inside/perplexity/text_score.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"

namespace kilin {

namespace {

double ratio(double sum, size_t n) { return n == 0 ? 0 : sum / static_cast<double>(n); }

}  // namespace

void for_each_prediction(Engine& engine, std::span<const int32_t> ids, size_t window,
                         const std::function<void(size_t, std::span<const float>, int32_t)>& each) {
  if (ids.size() < 2)
    raise(ErrorCode::InvalidArgument, "the text has {} tokens; expected at least 2, so that one can be predicted", ids.size());
  if (window < 1 || window > engine.max_sequence_tokens())
    raise(ErrorCode::InvalidArgument, "a window of {} tokens does not fit; expected 1 to {}", window,
          engine.max_sequence_tokens());
  for (size_t begin = 0; begin + 1 < ids.size(); begin += window) {
    const auto part = ids.subspan(begin, std::min(window, ids.size() - 1 - begin));
    engine.logits(part, [&](size_t position, MatView<const float> logits) {
      for (size_t r = 0; r < logits.rows(); ++r) each(begin + position + r, logits[r], ids[begin + position + r + 1]);
    });
  }
}

Prediction::Prediction(std::span<const float> logits) : logits_(logits) {
  assert(!logits.empty());
  const auto largest = std::ranges::max_element(logits);
  const auto max = static_cast<double>(*largest);
  double sum = 0;
  for (float x : logits) sum += std::exp(static_cast<double>(x) - max);
  log_sum_ = max + std::log(sum);
  first_ = static_cast<size_t>(largest - logits.begin());
}

bool Prediction::is_distribution() const { return std::isfinite(log_sum_); }

void TextScore::add(double surprise) {
  ++predictions_;
  sum_ += surprise;
  squares_ += surprise * surprise;
}

double TextScore::nll() const { return ratio(sum_, predictions_); }

double TextScore::perplexity() const { return std::exp(nll()); }

double TextScore::perplexity_error() const {
  if (predictions_ < 2) return 0;
  const auto n = static_cast<double>(predictions_);
  const double variance = std::max(0.0, squares_ / n - nll() * nll()) / (n - 1);
  return perplexity() * std::sqrt(variance);
}

void Divergence::add(const Prediction& p, const Prediction& q) {
  assert(p.size() == q.size());
  double divergence = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p.log_probability(i), share = std::exp(log_p);
    if (share > 0) divergence += share * (log_p - q.log_probability(i));
  }
  // If p is not a distribution, its probabilities are NaN, and none compares as above 0.
  const bool defined = p.is_distribution() && !std::isnan(divergence);
  divergences_.push_back(!defined ? INFINITY : std::max(divergence, 0.0));  // rounding can make it negative
  if (p.first() == q.first()) ++same_first_;
}

double Divergence::mean() const {
  double sum = 0;
  for (double divergence : divergences_) sum += divergence;
  return ratio(sum, predictions());
}

double Divergence::quantile(double share) const {
  if (divergences_.empty()) return 0;
  std::vector<double> sorted = divergences_;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(std::clamp<size_t>(rank, 1, sorted.size()) - 1);
  std::ranges::nth_element(sorted, nth);
  return *nth;
}

double Divergence::same_first() const { return ratio(static_cast<double>(same_first_), predictions()); }

}  // namespace kilin

// How well a model predicts a text, and how far its predictions are from another model's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace kilin {

/// Calls `each` for every prediction of a text, in order, with its number, the logits [vocab_size] and the token that came. The
/// text is read in windows from an empty context: window w reads ids[n w, n w + n) and predicts ids[n w + 1, n w + n + 1), so
/// that ids.size() - 1 tokens are predicted, each once.
/// @param window tokens. @throws InvalidArgument unless there are two ids and the window is 1 to the engine's context; as
/// Engine::logits
void for_each_prediction(Engine& engine, std::span<const int32_t> ids, size_t window,
                         const std::function<void(size_t prediction, std::span<const float> logits, int32_t next)>& each);

/// The distribution over the next token that logits define; normalised once, by the constructor.
class Prediction {
 public:
  /// @param logits must outlive it; at least one
  explicit Prediction(std::span<const float> logits);

  size_t size() const { return logits_.size(); }
  /// log p(i), in nats.
  double log_probability(size_t i) const { return static_cast<double>(logits_[i]) - log_sum_; }
  /// -log p(id), in nats. @pre id < size()
  double surprise(int32_t id) const { return -log_probability(static_cast<size_t>(id)); }
  /// The most probable token; of equals the lowest id.
  size_t first() const { return first_; }
  /// False if a logit is NaN or +infinity, so that there are no probabilities.
  bool is_distribution() const;

 private:
  std::span<const float> logits_;
  double log_sum_;  // log sum e^logit
  size_t first_;
};

/// Sums over predictions. Not thread-safe.
class TextScore {
 public:
  void add(double surprise);

  size_t predictions() const { return predictions_; }
  double nll() const;               ///< mean surprise, nats a token
  double perplexity() const;        ///< e^nll
  double perplexity_error() const;  ///< its standard error, if predictions are independent

 private:
  size_t predictions_ = 0;
  double sum_ = 0, squares_ = 0;
};

/// Measures how far predictions q are from stored ones p of the same text. Not thread-safe.
class Divergence {
 public:
  /// Adds one prediction: KL(p || q) in nats, and whether both put the same token first. @pre as many p as q
  void add(const Prediction& p, const Prediction& q);

  size_t predictions() const { return divergences_.size(); }
  double mean() const;
  /// The divergence that this share of predictions does not exceed: 0.99 gives the 99th percentile, by nearest rank. @pre 0 <
  /// share <= 1
  double quantile(double share) const;
  double largest() const { return quantile(1); }
  double same_first() const;  ///< share of predictions

 private:
  std::vector<double> divergences_;
  size_t same_first_ = 0;
};

}  // namespace kilin

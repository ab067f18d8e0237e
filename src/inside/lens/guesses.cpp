#include "inside/lens/guesses.h"

#include <algorithm>
#include <cmath>

#include "model/ops.h"

namespace kilin {

std::optional<TrueToken> read_guesses(const KernelTable& kernels, std::span<const float> logits, std::span<float> probabilities,
                                      std::optional<int32_t> actual, std::span<Guess> best) {
  // Compares logits rather than probabilities, since fewer of them are equal.
  const auto logit = [&](const Guess& guess) { return logits[static_cast<size_t>(guess.id)]; };
  size_t found = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    const bool full = found == best.size();
    if (std::isnan(logits[id]) || (full && !(logits[id] > logit(best[found - 1])))) continue;
    size_t at = full ? found - 1 : found++;
    for (; at > 0 && logits[id] > logit(best[at - 1]); --at) best[at] = best[at - 1];
    best[at].id = static_cast<int32_t>(id);
  }
  if (found < best.size() || !std::isfinite(logit(best.front()))) return std::nullopt;
  softmax(kernels, logits, probabilities);
  for (Guess& guess : best) guess.probability = probabilities[static_cast<size_t>(guess.id)];
  if (!actual) return TrueToken{};
  const auto id = static_cast<size_t>(*actual);
  const size_t above = static_cast<size_t>(std::ranges::count_if(logits, [&](float x) { return x > logits[id]; }));
  const size_t equal_before = static_cast<size_t>(std::ranges::count(logits.first(id), logits[id]));
  return TrueToken{static_cast<uint32_t>(above + equal_before + 1), probabilities[id]};
}

}  // namespace kilin

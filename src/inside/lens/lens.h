// Looks at a prompt from inside, reduced during the pass to what a page can show: no matrix of scores and no row of logits is
// kept beyond its layer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace kilin {

/// A token that could come next.
struct Guess {
  int32_t id = 0;
  float probability = 0;
};

/// Rank and probability of the token that really comes next.
struct TrueToken {
  uint32_t rank = 0;  ///< 1: it is the first guess; 0: after the last token, where the next one is unknown
  float probability = 0;
};

/// What each layer's stream would predict as the next token if the model ended there (project_on_vocab). Row 0 is the
/// embedding's, row l + 1 that of layer l, so the last row is the model's own answer.
struct LogitLens {
  size_t rows = 0;
  size_t guesses = 0;             ///< of a cell
  std::vector<Guess> best;        ///< [rows, S, guesses], most probable first, the lower id first among equals
  std::vector<TrueToken> actual;  ///< [rows, S]
};

/// The attention patterns of an MLA layer's heads.
struct AttentionPatterns {
  size_t layer = 0;
  size_t heads = 0;
  /// [heads, n (n + 1) / 2] rows of the lower triangle, one after another, of n = ceil(S / block) rows: the largest probability
  /// among `block` queries by `block` keys
  std::vector<float> probabilities;
};

/// How fast a KDA layer forgets, and how much it writes.
struct MemoryPatterns {
  size_t layer = 0;
  size_t heads = 0;
  size_t channels = 0;  ///< of a head's keys
  /// [heads, channels] ln 2 / -(mean log decay over the prompt), in tokens: after that many, half of the content is left.
  /// Infinite if nothing decays
  std::vector<float> half_lives;
  std::vector<float> token_half_lives;  ///< [S, heads] geometric mean over the channels, from the decay at that token alone
  std::vector<float> betas;             ///< [S, heads] how much of the old value a token overwrites, 0 to 1
};

/// Which experts a layer's tokens went to.
struct ExpertChoices {
  size_t layer = 0;
  size_t experts = 0;
  size_t chosen = 0;             ///< by each token
  std::vector<int32_t> indices;  ///< [S, chosen] ascending
  std::vector<float> weights;    ///< [S, chosen] after renormalisation and scale
  std::vector<uint32_t> load;    ///< [experts] tokens; sums to S x chosen
};

struct Lens {
  std::vector<int32_t> ids;  ///< [S]
  LogitLens logit_lens;
  size_t attention_block = 1;                ///< tokens by tokens that a cell of the patterns stands for
  std::vector<AttentionPatterns> attention;  ///< of the MLA layers
  std::vector<MemoryPatterns> kda;           ///< of the KDA layers
  std::vector<ExpertChoices> experts;        ///< of the layers with a mixture of experts
};

struct LensOptions {
  static constexpr size_t kMostTokens = 4096;

  size_t guesses = 5;
  /// Most cells of all patterns together; in longer prompts a cell stands for a block of tokens. For the published model, 7
  /// layers of 32 heads, 200 tokens fit with a cell for each pair.
  size_t attention_cells = 5'000'000;
  /// Called now and then with the work done and the total; an exception from it ends the pass.
  std::function<void(size_t done, size_t total)> progress = {};
};

/// Runs a prompt and collects all of this. To get attention probabilities, the MLA layers take their staged path, so that
/// logits may differ by 1e-5 from those of a plain pass.
/// @throws InvalidArgument for a prompt of more than LensOptions::kMostTokens, and as trace_steps; Corrupt if no logit is a
/// number; ResourceExhausted; what options.progress throws
Lens look_inside(Engine& engine, std::span<const int32_t> ids, const LensOptions& options = {});

}  // namespace kilin

// The layers as golden/README.md states them, in double, token by token: they share no code with the product, and are what its
// modules are held against where there is no golden data. x is always the rows of one sequence, from its first token.
#pragma once

#include <string>
#include <vector>

#include "config/model_config.h"
#include "support/made_up_weights.h"

namespace kilin::testing {

using Doubles = std::vector<double>;

/// y = x W^T for the matrix of this name.
Doubles naive_linear(const MadeUpWeights& w, const std::string& name, const Doubles& x);

/// By row of as many values as the weight has.
Doubles naive_rms_norm(const MadeUpWeights& w, const std::string& name, double eps, const Doubles& x);

/// Section 1.
Doubles naive_kda(const MadeUpWeights& w, const std::string& prefix, const ModelConfig& c, const Doubles& x);

/// Section 2.
Doubles naive_mla(const MadeUpWeights& w, const std::string& prefix, const ModelConfig& c, const Doubles& x);

/// down(silu(gate x) * up x), the matrices' names given.
Doubles naive_mlp(const MadeUpWeights& w, const std::string& gate, const std::string& up, const std::string& down,
                  const Doubles& x);

/// Section 3: where a row goes, ascending by expert.
struct NaiveRoute {
  std::vector<size_t> experts;
  Doubles weights;
};
NaiveRoute naive_route(const ModelConfig& c, std::span<const double> logits, std::span<const float> bias);
Doubles naive_moe(const MadeUpWeights& w, const std::string& prefix, const ModelConfig& c, const Doubles& x);

/// Section 0: a whole layer of the kinds that the configuration says.
Doubles naive_decoder_layer(const MadeUpWeights& w, const ModelConfig& c, size_t layer, const Doubles& x);

/// Random tensors of each, as the checkpoint names and shapes them. A bias or a decay is as large as in real ones.
void add_kda(MadeUpWeights& w, const std::string& prefix, const ModelConfig& c);
void add_mla(MadeUpWeights& w, const std::string& prefix, const ModelConfig& c);
void add_mlp(MadeUpWeights& w, const std::string& prefix, size_t hidden, size_t width);
void add_moe(MadeUpWeights& w, const std::string& prefix, const ModelConfig& c);
void add_decoder_layer(MadeUpWeights& w, const ModelConfig& c, size_t layer);

/// As the products' comparisons take them.
inline std::vector<float> rounded(const Doubles& x) { return {x.begin(), x.end()}; }

}  // namespace kilin::testing

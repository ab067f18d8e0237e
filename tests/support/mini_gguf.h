// A whole Kimi-Linear model of two layers (KDA and dense, MLA and experts) as a small GGUF file that tests can change.
#pragma once

#include "support/gguf.h"

namespace kilin::testing {

/// 2 layers, hidden 4, vocabulary 260, 2 heads: KDA of 3, convolution of 4; MLA of nope 3, rope 2, value 2, rank 5; 3 experts
/// of 6, 2 per token, 1 shared; dense 8. All fp32, with values only where a test needs them. Has all keys except the
/// tokeniser's.
GgufBuilder mini_gguf();

/// Values 0, 1/8, 2/8, ... from `first` on.
std::vector<float> ramp(size_t n, float first = 0);

/// Adds the keys of a tokeniser: the 256 bytes, "ab" as 256, and [EOS], <|im_end|>, [EOT] as special tokens.
void add_tokenizer(GgufBuilder& file);

}  // namespace kilin::testing

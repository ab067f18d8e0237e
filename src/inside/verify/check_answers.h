// Checks that run the model.
#pragma once

#include <cstddef>

#include "engine/engine.h"
#include "inside/verify/check.h"

namespace kilin {

/// "logits": those of a short prompt are finite and not all alike. "answer": of a few greedy tokens the first is the one with
/// the largest logit; if a reader can judge the text, it is shown.
/// @param tokens how many
void check_answer(CheckReporter& reporter, Engine& engine, size_t tokens);

/// Compares the model with its folder's expected.json, such as that of models/tiny: prompts with their greedy continuations,
/// the perplexity of eval.txt, and the logits of its beginning in expected_logits.npy. Without that file there are no such
/// checks.
/// Throws nothing: a fault of the file is a failed check
void check_expected(CheckReporter& reporter, Engine& engine);

}  // namespace kilin

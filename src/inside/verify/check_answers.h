// Checks that run the model.
#pragma once

#include <cstddef>

#include "engine/engine.h"
#include "inside/verify/check.h"

namespace kilin {

/// "logits": of a short prompt, finite and not all alike. "answer": a few greedy tokens; the first is the largest logit, and
/// where the text is known to be judged by a reader, it is shown.
/// @param tokens how many
void check_answer(CheckReporter& reporter, Engine& engine, size_t tokens);

/// What a folder's own expected.json says of it, as models/tiny has one: prompts with their greedy continuations, the
/// perplexity of eval.txt, and the logits of its beginning in expected_logits.npy. A folder without that file has none of these
/// checks.
/// @throws nothing: what is wrong with the file is a failed check
void check_expected(CheckReporter& reporter, Engine& engine);

}  // namespace kilin

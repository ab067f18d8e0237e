// The logit lens: what a row of the residual stream would predict if the model ended there.
#pragma once

#include "engine/engine.h"

namespace kilin {

/// Computes logits of rows of the residual stream, through the final norm and lm_head. From the last layer's output these are
/// the model's own, byte for byte.
/// @param stream [R, hidden_size], any layer's output. @param logits [R, vocab_size]
/// @throws InvalidArgument for other shapes; ResourceExhausted
void project_on_vocab(Engine& engine, MatView<const float> stream, MatView<float> logits);

}  // namespace kilin

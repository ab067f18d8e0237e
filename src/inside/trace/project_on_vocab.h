// What a row of the residual stream would say if the model ended there: the logit lens.
#pragma once

#include "engine/engine.h"

namespace kilin {

/// Logits of rows of the residual stream, through the final norm and lm_head: those of the last layer's output are the model's
/// own, byte for byte.
/// @param stream [R, hidden_size], any layer's output. @param logits [R, vocab_size]
/// @throws InvalidArgument for other shapes; ResourceExhausted
void project_on_vocab(Engine& engine, MatView<const float> stream, MatView<float> logits);

}  // namespace kilin

// Refuses models that look like Kimi-Linear but are not, naming the key that shows it, rather than running them wrongly.
#pragma once

#include "config/config_reader.h"

namespace kilin {

/// @throws Unsupported for another architecture, keys of Kimi K3, rotary embeddings, q_lora_rank, multi-token heads, quantised
/// weights, other activations; Corrupt for a value of the wrong type
void refuse_other_models(const ConfigReader& in);

}  // namespace kilin

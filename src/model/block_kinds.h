// What blocks a model has, as the names of its inner values need to know it.
#pragma once

#include <vector>

#include "config/model_config.h"
#include "taps/names.h"

namespace kilin {

std::vector<BlockKind> block_kinds(const ModelConfig& config);

}  // namespace kilin

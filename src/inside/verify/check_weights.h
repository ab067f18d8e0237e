// Checks a model's weight files without running the model.
#pragma once

#include "core/thread_pool.h"
#include "inside/verify/check.h"
#include "loading/model_files.h"

namespace kilin {

/// "files": each is there, complete, and holds what the index says. "tensors": each tensor of the model and no other, with the
/// right shape and dtype. "values": every value is finite. @returns whether the model can be loaded
bool check_weights(CheckReporter& reporter, const ModelFiles& files, const ModelConfig& config, ThreadPool& pool);

}  // namespace kilin

// Checks of a model's weights as files: nothing is run.
#pragma once

#include "core/thread_pool.h"
#include "inside/verify/check.h"
#include "loading/model_files.h"

namespace kilin {

/// "files": each is there, whole, and holds what the index promises. "tensors": each of the model's, and no other, with the
/// right shape and dtype. "values": every one of them finite. @returns whether the model can be loaded
bool check_weights(CheckReporter& reporter, const ModelFiles& files, const ModelConfig& config, ThreadPool& pool);

}  // namespace kilin

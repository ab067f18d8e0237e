// Checks of the files of packed weights that loads of a model have left.
#pragma once

#include "core/thread_pool.h"
#include "inside/verify/check.h"
#include "loading/model_files.h"
#include "weights/pack_placement.h"

namespace kilin {

/// "packed weights", for each file that is there: whether every matrix is what was packed. A file that the next load makes anew
/// is a note. @pre the weights have passed check_weights
void check_packs(CheckReporter& reporter, const ModelFiles& files, const ModelConfig& config, const PackPlacement& placement,
                 ThreadPool& pool);

}  // namespace kilin

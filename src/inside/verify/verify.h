// Checks everything that can be checked about a model's folder or GGUF file, for users who want to trust the weights that they
// have.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "inside/verify/check.h"
#include "weights/pack_placement.h"

namespace kilin {

struct VerifyOptions {
  size_t threads = 1;
  size_t tokens = 32;  ///< of the greedy answer
  enum class Run : uint8_t {
    Everything,
    FilesOnly,  ///< the model is not run
  } run = Run::Everything;
  PackPlacement pack_cache = {};  ///< where files of packed weights are looked for
};

/// Checks the configuration, weights, packed weights, tokenizer and answers, in this order, and reports each check as it is
/// done. A fault is a failed check, not an exception; checks that depend on a failed one are skipped.
std::vector<Check> verify_model(const std::filesystem::path& path, const VerifyOptions& options,
                                const CheckReporter::Listener& listener = {});

/// Whether no check has failed.
bool all_good(const std::vector<Check>& checks);

}  // namespace kilin

// Everything that can be told about a model's folder or GGUF file: for whoever has the weights and wants to trust them.
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

/// Runs the checks of the configuration, weights, packed weights, tokenizer and answers in this order and reports each as it is
/// done. Faults are checks that failed, not exceptions; what depends on one of them is skipped.
std::vector<Check> verify_model(const std::filesystem::path& path, const VerifyOptions& options,
                                const CheckReporter::Listener& listener = {});

/// None has failed.
bool all_good(const std::vector<Check>& checks);

}  // namespace kilin

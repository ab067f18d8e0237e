// What an engine is made for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/runner.h"

namespace kilin {

struct EngineOptions {
  size_t threads = 0;           ///< as RunnerOptions
  size_t prefill_chunk = 2048;  ///< most prompt tokens a step. From 64 on, cuts fall on multiples of 64 and change no byte
  std::optional<ActivationType> activations = {};  ///< as RunnerOptions
  std::optional<KvType> kv_type = {};              ///< as RunnerOptions
  size_t max_sequences = 1;                        ///< sequences that may be in memory at once
  size_t pool_tokens = 32768;  ///< tokens that all sequences together may hold; one holds at most the model's own length
  KernelChoice kernels = KernelChoice::from_environment();

  enum class Drive : uint8_t {
    Thread,    ///< a thread of the engine runs steps as long as there is something to do
    ByCaller,  ///< steps run when somebody calls Engine::step
  };
  Drive drive = Drive::Thread;

  static constexpr size_t kMostThreads = 4096, kMostPrefillChunk = 1u << 16;

  /// For before a model is loaded, which takes long. @throws InvalidArgument naming the option, its value and its range; as
  /// select_kernels
  void validate() const;
};

}  // namespace kilin

// Writes a checkpoint of random weights in Hugging Face's layout, for tests and benchmarks of shapes without available weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/thread_pool.h"
#include "synthetic/synthetic_config.h"

namespace kilin {

struct SyntheticCheckpoint {
  /// What to do with a folder that exists already.
  enum class Existing {
    Refuse,   ///< it must be empty
    Replace,  ///< replace its weights, config.json and tokenizer files; other files stay
  };

  std::filesystem::path config;  ///< a config.json, or a folder that holds one
  SyntheticShape shape;
  uint64_t seed = 0;
  uint64_t max_shard_bytes = 5'000'000'000;
  std::optional<std::filesystem::path> tokenizer;  ///< a folder whose tokenizer files are copied
  Existing existing = Existing::Refuse;

  /// What write() writes or would write.
  struct Size {
    size_t tensors = 0;
    uint64_t parameters = 0;
    uint64_t bytes = 0;  ///< of weights
  };
  using Progress = std::function<void(uint64_t bytes_done, uint64_t bytes_total)>;

  /// Writes the checkpoint, holding one piece of a tensor in memory. Afterwards the folder holds all of it or, after an error,
  /// what it held before. The bytes depend on config, shape and seed alone.
  /// @throws InvalidArgument for a folder that is not empty; ResourceExhausted if the disk has no room for it; as
  /// synthetic_config; Unsupported for a tokenizer with more tokens than the embedding has rows; Io
  Size write(const std::filesystem::path& out, ThreadPool& pool, const Progress& progress = {}) const;
};

}  // namespace kilin

// How much memory a model takes here, told from its configuration: before anything is loaded, or where its weights are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cache/latent_kv_pool.h"
#include "core/cpu_info.h"
#include "model/kimi_linear_for_causal_lm.h"
#include "model/model_config.h"

namespace kilin {

/// What the model is to do. The numbers mean what EngineOptions' mean.
struct MemoryUse {
  KvType kv_type = KvType::f32;
  size_t sequences = 1;          ///< in memory at once
  size_t context_tokens = 4096;  ///< of all sequences together
  size_t prefill_chunk = 2048;
  size_t threads = 1;
};

/// Bytes. A sum that does not fit into 64 bits counts as the largest number.
struct MemoryPlan {
  uint64_t weights = 0;             ///< mapped from their files
  uint64_t state_per_sequence = 0;  ///< KDA states and convolution tails; the same for every length
  uint64_t latents_per_token = 0;   ///< of all MLA layers
  uint64_t states = 0;
  uint64_t latents = 0;
  uint64_t workspace = 0;  ///< scratch memory of the largest step

  /// What is not backed by a file: it must be in memory.
  uint64_t working() const;
  uint64_t total() const;
};

/// @param weight_bytes as they are stored. @throws ResourceExhausted for a model too large to even be addressed
MemoryPlan plan_memory(const ModelConfig& config, uint64_t weight_bytes, const MemoryUse& use);

/// Rows of logits that a step holds at once: 42 MB at the real vocabulary.
inline constexpr size_t kLogitRows = 64;

/// The workspace of a step's largest batch: final hidden rows, logits and what the layers take.
size_t step_workspace_bytes(const KimiLinearForCausalLM& model, size_t prefill_chunk, size_t sequences, size_t threads);

enum class MemoryFit : uint8_t {
  Fits,             ///< in what is free now
  NeedsMoreFree,    ///< in the machine, if other programs give some back
  WeightsFromDisk,  ///< weights are read from their file again and again; slow, but it runs
  TooLarge,         ///< states, latents and workspace alone are more than the machine has
};

/// "fits", "needs more free memory", "weights from disk", "too large"
std::string_view to_string(MemoryFit fit);

MemoryFit fit_of(const MemoryPlan& plan, const MemoryInfo& memory);

}  // namespace kilin

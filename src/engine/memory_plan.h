// How much memory an engine takes. It can be told from a model's configuration alone, before anything is loaded or where the
// weights are not; the engine sizes its pools by the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cache/latent_kv_pool.h"
#include "core/cpu_info.h"
#include "model/kimi_linear_for_causal_lm.h"

namespace kilin {

/// What the model is to do. The numbers mean what EngineOptions' mean.
struct MemoryUse {
  KvType kv_type = KvType::f32;
  size_t sequences = 1;       ///< in memory at once
  size_t pool_tokens = 4096;  ///< of all sequences together
  size_t prefill_chunk = 2048;
  size_t threads = 1;
  std::optional<ActivationType> activations = {};  ///< unset: whichever takes most memory
};

/// Bytes. A sum that does not fit into 64 bits counts as the largest number.
struct MemoryPlan {
  uint64_t weights = 0;             ///< as they are used: mapped from their files, or packed
  uint64_t state_per_sequence = 0;  ///< KDA states and convolution tails; the same for every length
  uint64_t latents_per_token = 0;   ///< of all MLA layers
  uint64_t latent_pages = 0;        ///< pages of the latent pool: a sequence rounds up on its own
  uint64_t states = 0;
  uint64_t latents = 0;
  uint64_t workspace = 0;  ///< scratch memory of the largest step

  /// What must be in memory wherever the weights are: states, latents and workspace.
  uint64_t working() const;
  uint64_t total() const;
};

/// Rows of logits that a step holds at once: 42 MB at the real vocabulary.
inline constexpr size_t kLogitRows = 64;

/// Bounds of the steps that a workspace is for.
struct StepSizes {
  size_t tokens = 0;       ///< of a batch
  size_t hidden_rows = 0;  ///< that pass the final norm
  size_t shown_rows = 0;   ///< whose logits taps want to see, all at once
  size_t threads = 1;
  std::optional<ActivationType> activations = {};  ///< unset: whichever takes most
};
/// The most that Runner::run takes from a workspace.
uint64_t step_workspace_bytes(const KimiLinearForCausalLM& model, const StepSizes& sizes);

/// @param weight_bytes as they are used; see LoadedModel::weight_bytes
MemoryPlan plan_memory(const KimiLinearForCausalLM& model, uint64_t weight_bytes, const MemoryUse& use);

/// The same from the configuration. @throws ResourceExhausted for a model too large to even be addressed
MemoryPlan plan_memory(const ModelConfig& config, uint64_t weight_bytes, const MemoryUse& use);

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

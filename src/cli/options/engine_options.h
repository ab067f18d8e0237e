// How generate, chat and logits run a model: the options that they share, and the loading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/engine.h"

namespace CLI {
class App;
}

namespace kilin::cli {

struct Context;
class InterruptGuard;

struct EngineFlags {
  std::optional<uint64_t> threads;
  std::optional<uint64_t> prefill_chunk;
  std::optional<std::string> kv_type;
  std::optional<std::string> activations;
  std::optional<std::string> quantize;
  std::optional<std::string> pack_cache;
  bool check_pack_cache = false;

  /// @param group the heading in the command's help
  void add_to(CLI::App& app, const char* group = "Running");

  /// @throws InvalidArgument naming the option, its value and what was expected
  EngineOptions options() const;

  /// Loads a model, with a bar where that takes long, and a line where packed weights were left for the next time.
  /// @throws InvalidArgument as options; as LoadedModel::load, and as InterruptGuard::check
  /// Warns of broken files that are not needed.
  LoadedModel load(const Context& context, const std::filesystem::path& path, const InterruptGuard& interrupts,
                   const LoadNeeds& needs) const;
};

/// The context that `--ctx` asks for. @throws InvalidArgument if the model was not made for so much
size_t require_context(uint64_t ctx, const LoadedModel& model);

}  // namespace kilin::cli

#include "cli/engine_options.h"

#include <CLI/App.hpp>

#include "cli/context.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "core/error.h"

namespace kilin::cli {

void EngineFlags::add_to(CLI::App& app, const char* group) {
  add_threads(app, threads, "Threads that compute")->group(group);
  add_unsigned(app, "--prefill-chunk", prefill_chunk,
               fmt::format("Most prompt tokens taken in one step (default: {})", EngineOptions().prefill_chunk),
               {1, EngineOptions::kMostPrefillChunk})
      ->group(group);
  add_choice(app, "--kv-type", {"f32", "bf16"}, kv_type, "How latents are cached: f32 or bf16 (default: as the activations)")
      ->group(group);
  add_choice(app, "--activations", {"f32", "bf16"}, activations,
             "What inputs of matrix products are rounded to: f32 or bf16 (default: f32)")
      ->group(group);
}

EngineOptions EngineFlags::options() const {
  EngineOptions options;
  if (threads) options.threads = *threads;
  if (prefill_chunk) options.prefill_chunk = *prefill_chunk;
  if (kv_type) options.kv_type = parse_kv_type(*kv_type);
  if (activations) options.activations = parse_activation_type(*activations);
  options.validate();
  return options;
}

size_t require_context(uint64_t ctx, const LoadedModel& model) {
  const size_t most = model.config().model_max_length;
  if (ctx > most)
    raise(ErrorCode::InvalidArgument, "--ctx is {}; expected 1 to {}, the model_max_length of {}", ctx, most,
          model.path().string());
  return ctx;
}

LoadedModel load_model(const Context& context, const std::filesystem::path& path, const InterruptGuard& interrupts) {
  Progress bar(context.err, "loading");
  return LoadedModel::load(path, [&](size_t done, size_t total) {
    interrupts.check();
    bar.update(done, total);
  });
}

}  // namespace kilin::cli

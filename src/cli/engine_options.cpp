#include "cli/engine_options.h"

#include <CLI/App.hpp>

#include "cli/context.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "core/error.h"

namespace kilin::cli {

void EngineFlags::add_to(CLI::App& app) {
  constexpr const char* group = "Running";
  add_unsigned(app, "--threads", threads, "Threads that compute (default: as many as this process may use)")->group(group);
  add_unsigned(app, "--prefill-chunk", prefill_chunk,
               fmt::format("Most prompt tokens taken in one step (default: {})", EngineOptions().prefill_chunk))
      ->group(group);
  app.add_option("--kv-type", kv_type, "How latents are cached: f32 or bf16 (default: as the activations)")->group(group);
  app.add_option("--activations", activations, "What inputs of matrix products are rounded to: f32 or bf16 (default: f32)")
      ->group(group);
}

EngineOptions EngineFlags::options() const {
  EngineOptions options;
  if (threads) {
    if (*threads == 0) raise(ErrorCode::InvalidArgument, "--threads is 0; expected at least 1");
    options.threads = *threads;
  }
  if (prefill_chunk) options.prefill_chunk = *prefill_chunk;
  if (kv_type) options.kv_type = parse_kv_type(*kv_type);
  if (activations) options.activations = parse_activation_type(*activations);
  options.validate();
  return options;
}

LoadedModel load_model(const Context& context, const std::filesystem::path& folder, const InterruptGuard& interrupts) {
  Progress bar(context.err, "loading");
  return LoadedModel::load(folder, [&](size_t done, size_t total) {
    interrupts.check();
    bar.update(done, total);
  });
}

}  // namespace kilin::cli

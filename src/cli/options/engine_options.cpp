#include "cli/options/engine_options.h"

#include <CLI/App.hpp>

#include "cli/context.h"
#include "cli/options/options.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/error.h"

namespace kilin::cli {

void EngineFlags::add_to(CLI::App& app, const char* group) {
  add_threads(app, threads, "Threads that compute")->group(group);
  add_unsigned(app, "--prefill-chunk", prefill_chunk,
               fmt::format("Most prompt tokens taken in one step (default: {})", EngineOptions().prefill_chunk),
               {1, EngineOptions::kMostPrefillChunk})
      ->group(group);
  add_choice(app, "--kv-type", {"f32", "bf16", "q8"}, kv_type,
             "How latents are cached: f32, bf16 or q8 (default: f32 with f32 activations, else bf16)")
      ->group(group);
  add_choice(
      app, "--activations", {"f32", "bf16", "int8"}, activations,
      "What inputs of matrix products are rounded to: f32, bf16 or int8 (default: int8 with quantised weights, else f32)")
      ->group(group);
  add_choice(app, "--quantize", quant_type_names(), quantize,
             fmt::format("Quantise the weights of a model in f32, f16 or bf16 at load: {}", known_quant_types()))
      ->group(group);
  add_text(
      app, "--pack-cache", "WHERE", "auto, off or a folder", pack_cache,
      "Where packed weights are kept for the next load: a folder, off for memory alone, or auto (default): beside the model "
      "or in ~/.cache/kilin, if they are more than half of the memory")
      ->group(group);
  app.add_flag("--check-pack-cache", check_pack_cache,
               "Compare kept packed weights with their checksums first, and pack damaged ones anew (reads all of the file)")
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

LoadedModel EngineFlags::load(const Context& context, const std::filesystem::path& path, const InterruptGuard& interrupts,
                              const LoadNeeds& needs) const {
  LoadOptions load;
  load.needs = needs;
  load.threads = thread_count(threads);
  if (quantize) load.quantize = parse_quant_type(*quantize);
  if (pack_cache) load.pack_cache = PackPlacement::parse(*pack_cache);
  if (check_pack_cache) load.pack_cache.check = PackCheck::Checksums;
  Progress reading(context.err, "loading"), packing(context.err, "packing");
  load.progress = [&](LoadStage stage, uint64_t done, uint64_t total) {
    interrupts.check();
    (stage == LoadStage::Packing ? packing : reading).update(done, total);
  };
  LoadedModel model = LoadedModel::load(path, load);
  packing.erase();
  for (const std::string& warning : model.warnings) context.err.print("kilin: {}; it is not used here\n", displayable(warning));
  if (!model.new_pack_file.empty())
    context.err.print("kilin: packed weights were left in {} for the next time (--pack-cache off keeps them in memory)\n",
                      displayable(model.new_pack_file.string()));
  return model;
}

}  // namespace kilin::cli

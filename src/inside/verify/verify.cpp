#include "inside/verify/verify.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "inside/verify/check_answers.h"
#include "inside/verify/check_packs.h"
#include "inside/verify/check_tokenizer.h"
#include "inside/verify/check_weights.h"

namespace kilin {

namespace {

// Also checks generation_config.json, which is read when the model is loaded.
Check check_config(const ModelFiles& files, std::optional<ModelConfig>& config) {
  config = files.config();
  files.generation(*config);
  return ok(fmt::format("{} layers, {} of KDA and {} of MLA; {} experts, {} a token; hidden size {}, vocabulary {}",
                        config->num_hidden_layers, config->kda_layers(), config->mla_layers(), config->num_experts,
                        config->num_experts_per_token, config->hidden_size, config->vocab_size));
}

void check_running(CheckReporter& reporter, const std::filesystem::path& path, const VerifyOptions& options) {
  std::unique_ptr<Engine> engine;
  const bool loaded = reporter.run("load", [&] {
    EngineOptions engine_options;
    engine_options.threads = options.threads;
    engine_options.pool_tokens = 4096;
    LoadOptions load_options;
    load_options.threads = options.threads;
    load_options.pack_cache = options.pack_cache;
    load_options.progress = [&](LoadStage, uint64_t done, uint64_t total) { reporter.progress("load", done, total); };
    auto model = LoadedModel::load(path, load_options);
    engine = std::make_unique<Engine>(std::move(model), engine_options);
    return ok(fmt::format("{} threads, {} kernels", engine->threads(), to_string(engine->kernels().isa)));
  });
  if (!loaded) return;
  check_answer(reporter, *engine, options.tokens);
  check_expected(reporter, *engine);
}

}  // namespace

std::vector<Check> verify_model(const std::filesystem::path& path, const VerifyOptions& options,
                                const CheckReporter::Listener& listener) {
  EngineOptions().validate();  // what the environment says of kernels, before anything is read
  CheckReporter reporter(listener);
  std::optional<ModelConfig> config;
  std::shared_ptr<const ModelFiles> files;
  const bool readable = reporter.run("config", [&] {
    files = ModelFiles::open(path);
    return check_config(*files, config);
  });
  if (!readable) return reporter.checks();
  bool good = true;
  {
    ThreadPool pool(options.threads);
    good = check_weights(reporter, *files, *config, pool);
    if (good) check_packs(reporter, *files, *config, options.pack_cache, pool);
  }
  check_tokenizer(reporter, *files, *config);
  good = good && all_good(reporter.checks());
  if (options.run == VerifyOptions::Run::FilesOnly) return reporter.checks();
  if (good)
    check_running(reporter, path, options);
  else
    reporter.skip("load", "what was found above would make it fail, or its answers worthless");
  return reporter.checks();
}

bool all_good(const std::vector<Check>& checks) {
  return std::ranges::none_of(checks, [](const Check& check) { return check.outcome == Outcome::Failed; });
}

}  // namespace kilin

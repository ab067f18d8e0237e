// kilin logits: the logits of every position of a prompt, as a NumPy file.
#include <CLI/App.hpp>
#include <memory>

#include "checkpoint/npy.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/engine_options.h"
#include "cli/options/options.h"
#include "cli/options/prompt_options.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"

namespace kilin::cli {

namespace {

constexpr const char* kFooter =
    "Row t of the file, float32 [tokens, vocab_size], says what follows token t.\n"
    "\n"
    "Examples:\n"
    "  kilin logits MODEL --ids 5,17,9 --out logits.npy\n"
    "  kilin logits MODEL -p 'The whale' --out logits.npy";

struct Arguments {
  std::optional<std::string> model;
  PromptFlags prompt;
  EngineFlags engine;
  std::optional<std::string> out;
  std::optional<uint64_t> seed;
};

void write_logits(const Context& context, Arguments& args) {
  EngineOptions options = args.engine.options();
  const std::filesystem::path path = model_path(context, args.model);
  Inputs inputs;
  inputs.add_model(path);
  args.prompt.add_to(inputs);
  inputs.require_other("--out", *args.out);
  args.prompt.resolve();
  const InterruptGuard interrupts;
  LoadedModel model = args.engine.load(context, path, interrupts, {args.prompt.need_of_tokenizer(), Need::Optional});
  const std::vector<int32_t> ids = args.prompt.encode(model);
  options.pool_tokens = ids.size();

  Engine engine(std::move(model), options);
  NpyWriter file(*args.out, ids.size(), engine.config().vocab_size);
  {
    Progress bar(context.err, "writing logits");
    engine.logits(ids, [&](size_t position, MatView<const float> rows) {
      interrupts.check();
      file.append(rows);
      bar.update(position + rows.rows(), ids.size());
    });
  }
  file.commit();
  context.err.print("{}: float32 [{}, {}]\n", displayable(*args.out), ids.size(), engine.config().vocab_size);
}

}  // namespace

void add_logits(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("logits", "Write the logits of every position of a prompt to a .npy file");
  command->footer(kFooter);
  const auto args = std::make_shared<Arguments>();
  add_model(*command, args->model);
  args->prompt.add_text_and_ids_to(*command);
  add_text(*command, "--out", "FILE", "the file to write", args->out, "The file to write; it appears whole or not at all")
      ->required();
  args->engine.add_to(*command);
  add_unsigned(*command, "--seed", args->seed, "Taken as by generate and chat; nothing is drawn here")->group("Running");
  command->callback([&context, args] { context.run = [&context, args] { write_logits(context, *args); }; });
}

}  // namespace kilin::cli

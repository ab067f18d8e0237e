// kilin lens: what happened inside while a prompt was read, as a page to look at.
#include <CLI/App.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/lens_page/page.h"
#include "cli/lens_page/page_data.h"
#include "cli/options/engine_options.h"
#include "cli/options/options.h"
#include "cli/options/prompt_options.h"
#include "cli/report/figures.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "core/file.h"
#include "inside/lens/lens.h"
#include "text/utf8.h"

namespace kilin::cli {

namespace {

constexpr const char* kDefaultFile = "lens.html";

constexpr const char* kFooter =
    "The page shows the logit lens, the attention of MLA layers, how long the channels of KDA layers remember, their betas,\n"
    "and the choice of experts. It is one file that needs no network. It is meant for prompts of up to some hundred tokens;\n"
    "more than 4096 are refused.\n"
    "\n"
    "Examples:\n"
    "  kilin lens -p 'The LORD is my shepherd'\n"
    "  kilin lens MODEL -p - -o page.html < prompt.txt\n"
    "  kilin lens MODEL --ids 5,17,9 -o - > page.html";

struct Arguments {
  std::optional<std::string> model;
  PromptFlags prompt;
  EngineFlags engine;
  std::optional<std::string> out;
  std::optional<uint64_t> seed;
};

// "tiny" for "models/tiny/", "Q4.gguf" for "there/Q4.gguf".
std::string name_of(const std::filesystem::path& model) {
  const std::filesystem::path whole = std::filesystem::absolute(model).lexically_normal();
  return replace_broken_utf8((whole.has_filename() ? whole : whole.parent_path()).filename().string());
}

void write_page(const Context& context, Arguments& args) {
  EngineOptions options = args.engine.options();
  options.pool_tokens = 1;  // a trace brings memory of its own
  const std::filesystem::path path = model_path(context, args.model);
  const std::string out = args.out.value_or(kDefaultFile);
  Inputs inputs;
  inputs.add_model(path);
  args.prompt.add_to(inputs);
  if (out != "-") inputs.require_other("--out", out);
  args.prompt.resolve();
  std::optional<AtomicFile> file;
  if (out != "-") file.emplace(out);  // a place that can't be written to is told before the weights are read

  const InterruptGuard interrupts;
  Engine engine(args.engine.load(context, path, interrupts, {args.prompt.need_of_tokenizer(), Need::Optional}), options);
  const LoadedModel& model = engine.loaded();
  const std::vector<int32_t> ids = args.prompt.encode(model);
  LensOptions lens_options;
  Progress bar(context.err, "looking inside");
  lens_options.progress = [&](size_t done, size_t total) {
    interrupts.check();
    bar.update(done, total);
  };
  const Lens lens = look_inside(engine, ids, lens_options);
  bar.erase();

  std::function<std::string_view(int32_t)> text;
  if (model.tokenizer)
    text = [&](int32_t id) {
      return static_cast<size_t>(id) < model.tokenizer->size() ? model.tokenizer->token_bytes(id) : std::string_view();
    };
  const std::string page = lens_page(lens_page_data(lens, name_of(model.path()), text));
  if (!file) return context.out.write(page);
  file->write(page);
  file->commit();
  context.err.print("{}: {} token{}, {} layers, {}\n", displayable(out), ids.size(), ids.size() == 1 ? "" : "s",
                    engine.config().num_hidden_layers, human_bytes(page.size()));
}

}  // namespace

void add_lens(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("lens", "Write a page that shows what happens inside while a prompt is read");
  command->footer(kFooter);
  const auto args = std::make_shared<Arguments>();
  add_model(*command, args->model);
  args->prompt.add_text_and_ids_to(*command);
  add_text(
      *command, "-o,--out", "FILE", "the file to write", args->out,
      fmt::format("The HTML file to write; it appears whole or not at all; -: standard output (default: {})", kDefaultFile));
  args->engine.add_to(*command);
  add_unsigned(*command, "--seed", args->seed, "Taken as by generate and chat; nothing is drawn here")->group("Running");
  command->callback([&context, args] { context.run = [&context, args] { write_page(context, *args); }; });
}

}  // namespace kilin::cli

// kilin generate: one prompt in, one text out.
#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/engine_options.h"
#include "cli/options/options.h"
#include "cli/options/prompt_options.h"
#include "cli/options/sampling_options.h"
#include "cli/report/generation_report.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal_text.h"
#include "core/error.h"
#include "text/chat_template.h"
#include "text/utf8.h"

namespace kilin::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kFooter =
    "Examples:\n"
    "  kilin generate\n"
    "  kilin generate MODEL -p 'The whale' -n 64 --seed 1\n"
    "  kilin generate MODEL --chat -p 'Tell me about the French Revolution.'\n"
    "  kilin generate MODEL --ids 5,17,9 -n 16 --temp 0 --ignore-eos --json\n"
    "\n"
    "Without MODEL and prompt, the model that comes with Kilin goes on from a line about Captain Ahab.";

// What the embedded model writes about when nobody says it.
constexpr const char* kTinyPrompt = "Captain Ahab stood upon the quarter-deck,";

struct Arguments {
  std::optional<std::string> model;
  PromptFlags prompt;
  SamplingFlags sampling;
  EngineFlags engine;
  size_t max_tokens = 128;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  bool json = false;
  std::optional<uint64_t> context_tokens;

  void validate() const {
    for (const std::string& text : stop) {
      if (text.empty()) raise(ErrorCode::InvalidArgument, "--stop is empty; expected at least one character");
      require_utf8(text, "--stop");
    }
    sampling.validate();
  }

  LoadNeeds needs() const {
    const bool is_greedy = sampling.temperature == 0.0;
    return {.tokenizer = stop.empty() ? prompt.need_of_tokenizer() : Need::Required,
            .generation = is_greedy || ignore_eos ? sampling.need_of_file() : Need::Required};
  }
};

// As much as the prompt and its answer need, unless --ctx says otherwise; no more than the model was made for.
size_t context_tokens(const Arguments& args, size_t prompt_tokens, const LoadedModel& model) {
  if (args.context_tokens) return require_context(*args.context_tokens, model);
  const size_t model_max_length = model.config().model_max_length;
  return prompt_tokens + std::min(args.max_tokens, model_max_length - std::min(prompt_tokens, model_max_length));
}

// Shows a request's progress, its text as it comes, and the end of it.
class Printer {
 public:
  Printer(const Context& context, const Arguments& args, bool has_text)
      : context_(context), args_(args), has_text_(has_text), bar_(context.err, "reading the prompt") {}

  void show_prompt(const std::string& text) const {
    if (args_.json || !context_.out.is_terminal()) return;
    context_.out.write(styled(context_.out, Style::Dim, without_controls(text) + (args_.prompt.chat ? "\n" : "")));
  }

  void show_progress(const Request& request) {
    if (request.prompt_tokens_read() < request.prompt_tokens())
      bar_.update(request.prompt_tokens_read(), request.prompt_tokens());
  }

  void show_token(const TokenEvent& event) {
    if (args_.json) return;
    bar_.erase();
    if (!has_text_) {
      context_.out.print("{}{}", std::exchange(written_, true) ? "," : "", event.id);
    } else if (!event.text.empty()) {
      written_ = true;
      ends_in_newline_ = event.text.back() == '\n';
      context_.out.write(context_.out.is_terminal() ? without_controls(event.text) : event.text);
    }
  }

  /// On a terminal what comes next begins a line of its own.
  void show_interruption() {
    bar_.erase();
    if (context_.out.is_terminal()) context_.out.write("\n");
  }

  void show_end(const GenerationReport& report) {
    bar_.erase();
    if (args_.json) {
      context_.out.write(report.json() + "\n");
      return;
    }
    if (!written_ || !ends_in_newline_) context_.out.write("\n");
    context_.err.print("{}\n", report.figures());
  }

 private:
  const Context& context_;
  const Arguments& args_;
  bool has_text_;
  Progress bar_;
  bool written_ = false;
  bool ends_in_newline_ = false;
};

void generate(const Context& context, Arguments& args) {
  if (!args.prompt.given() && !args.model) args.prompt.text = kTinyPrompt;
  args.validate();
  EngineOptions options = args.engine.options();
  args.prompt.resolve();

  const InterruptGuard interrupts;
  const Clock::time_point start = Clock::now();
  LoadedModel model = args.engine.load(context, model_path(context, args.model), interrupts, args.needs());
  const std::vector<int32_t> prompt = args.prompt.encode(model);
  if (args.prompt.chat)
    if (const auto warning = model.files->foreign_chat_format(*model.tokenizer)) context.err.print("kilin: {}\n", *warning);
  options.pool_tokens = context_tokens(args, prompt.size(), model);
  GenerationParams params;
  params.sampling = args.sampling.params(model.generation, model.files->generation_file());
  params.max_new_tokens = args.max_tokens;
  params.stop_strings = args.stop;
  if (args.ignore_eos) params.stop_ids.emplace();

  Engine engine(std::move(model), options);
  const double load_s = std::chrono::duration<double>(Clock::now() - start).count();
  const Tokenizer* tokenizer = engine.loaded().tokenizer.get();
  Printer printer(context, args, tokenizer != nullptr);
  const auto request = engine.submit(prompt, params);
  if (args.prompt.text) printer.show_prompt(*args.prompt.text);
  try {
    engine.follow(*request, {.on_token = [&](const TokenEvent& event) { printer.show_token(event); },
                             .between =
                                 [&] {
                                   interrupts.check();
                                   printer.show_progress(*request);
                                 }});
  } catch (const Interrupted& interrupted) {
    printer.show_interruption();
    throw FailureWasTold{interrupted.exit_code()};
  }
  printer.show_end({.prompt_ids = prompt,
                    .answer = request->answer(),
                    .seed = params.sampling.seed,
                    .has_text = tokenizer != nullptr,
                    .load_s = load_s,
                    .planned_bytes = engine.plan().working()});
}

}  // namespace

void add_generate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("generate", "Write text after a prompt");
  command->footer(kFooter);
  const auto args = std::make_shared<Arguments>();
  add_model(*command, args->model);
  args->prompt.add_text_and_ids_to(*command);
  args->prompt.add_chat_to(*command);
  add_unsigned(*command, "-n,--max-tokens", args->max_tokens, "Most tokens to write (default: 128)", {.min = 1});
  add_texts(*command, "--stop", args->stop, "End before this text; may be given several times");
  command->add_flag("--ignore-eos", args->ignore_eos, "Go on after tokens that end an answer; they are not shown");
  add_unsigned(*command, "--ctx", args->context_tokens,
               "Tokens to plan memory for, at most the model's own length (default: what prompt and -n need)", {.min = 1});
  command->add_flag("--json", args->json, "Print one JSON object: ids, text, finish_reason, timings, ...");
  args->sampling.add_to(*command);
  args->engine.add_to(*command);
  command->callback([&context, args] { context.run = [&context, args] { generate(context, *args); }; });
}

}  // namespace kilin::cli

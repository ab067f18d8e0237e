// kilin chat: a conversation in the terminal, or by a pipe, where answers alone go to standard output.
#include <unistd.h>

#include <CLI/App.hpp>
#include <memory>
#include <utility>

#include "cli/chat/chat_input.h"
#include "cli/chat/conversation.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/engine_options.h"
#include "cli/options/inputs.h"
#include "cli/options/options.h"
#include "cli/options/sampling_options.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal_text.h"
#include "core/error.h"
#include "text/chat_template.h"
#include "text/utf8.h"

namespace kilin::cli {

namespace {

constexpr size_t kDefaultContext = 32768;

struct Arguments {
  std::optional<std::string> model;
  SamplingFlags sampling;
  EngineFlags engine;
  std::optional<std::string> system;
  size_t max_tokens = 1024;
  std::optional<uint64_t> context_tokens;

  void validate() const {
    if (system) require_utf8(*system, "--system");
    sampling.validate();
  }
};

/// The loop of questions and answers. Notes and errors go to standard error; without a terminal an error also makes the program
/// fail in the end, for nobody was there to read it.
class Chat {
 public:
  Chat(const Context& context, InterruptGuard& interrupts, Engine& engine, GenerationParams params, const std::string& system,
       Inputs inputs)
      : out_(context.out),
        err_(context.err),
        is_interactive_(isatty(STDIN_FILENO) == 1 && context.out.is_terminal()),
        conversation_(engine, std::move(params)),
        interrupts_(interrupts),
        inputs_(std::move(inputs)) {
    conversation_.set_system(system);
  }

  /// @returns whether everything went well. @throws Interrupted if it was asked to end
  bool run() {
    if (is_interactive_) out_.write("/help lists commands; Ctrl-D ends.\n");
    LineReader lines(STDIN_FILENO, interrupts_.descriptor());
    std::string line;
    for (bool was_interrupted = false;;) {
      interrupts_.forget();
      interrupts_.check();
      decorate(styled(out_, Style::Bold, "> "));
      const LineReader::Result result = read_entry(lines, line, [this] { decorate(styled(out_, Style::Bold, ". ")); });
      if (result == LineReader::Result::Interrupted) {
        interrupts_.check();
        decorate("\n");
        if (was_interrupted) return all_went_well_;
        was_interrupted = true;
        note("Ctrl-C again or Ctrl-D ends");
        continue;
      }
      was_interrupted = false;
      if (result == LineReader::Result::Cut) {
        note(
            fmt::format("the terminal cuts a line at {} bytes, so nothing was sent; break it by a backslash at the end of a "
                        "line, or send it by a pipe",
                        LineReader::kMostTyped));
        continue;
      }
      if (result == LineReader::Result::End) {
        decorate("\n");
        return all_went_well_;
      }
      if (!obey(line)) return all_went_well_;
    }
  }

 private:
  void decorate(std::string_view text) const {
    if (is_interactive_) out_.write(text);
  }
  void note(std::string_view text) const { err_.print("kilin: {}\n", displayable(text)); }

  // Does what one entry wants. @returns false if that is to end.
  bool obey(const std::string& line) {
    try {
      const ChatEntry entry = parse_chat_entry(line);
      if (entry.kind == ChatEntry::Kind::Exit) return false;
      carry_out(entry);
    } catch (const OutputError&) {
      throw;
    } catch (const Error& error) {
      note(error.what());
      all_went_well_ = all_went_well_ && is_interactive_;
    }
    return true;
  }

  void carry_out(const ChatEntry& entry) {
    switch (entry.kind) {
      case ChatEntry::Kind::Message:
        if (entry.text.find_first_not_of(" \t\r\n") != std::string::npos) answer(entry.text);
        break;
      case ChatEntry::Kind::Save:
        inputs_.require_other("/save", entry.text);
        conversation_.save(entry.text);
        note(fmt::format("{} messages kept in {}", conversation_.turns().size(), entry.text));
        break;
      case ChatEntry::Kind::Load:
        conversation_.load(entry.text);
        note(fmt::format("{} messages, {} tokens from {}", conversation_.turns().size(), conversation_.tokens(), entry.text));
        break;
      case ChatEntry::Kind::Reset:
        conversation_.reset();
        break;
      case ChatEntry::Kind::System:
        conversation_.set_system(entry.text);
        break;
      case ChatEntry::Kind::Help:
        err_.print("{}\n", kChatCommands);
        break;
      case ChatEntry::Kind::Exit:
        break;
    }
  }

  void answer(const std::string& text) {
    Progress bar(err_, "reading");
    bool ends_in_newline = false;
    const auto show = [&](const TokenEvent& event) {
      bar.erase();
      if (event.text.empty()) return;
      ends_in_newline = event.text.back() == '\n';
      out_.write(out_.is_terminal() ? without_controls(event.text) : event.text);
    };
    const auto between = [&](Request& request) {
      if (request.prompt_tokens_read() < request.prompt_tokens())
        bar.update(request.prompt_tokens_read(), request.prompt_tokens());
      interrupts_.check();
      if (interrupts_.pending()) request.cancel();
    };
    Conversation::Reply answer{};
    try {
      answer = conversation_.ask(text, show, between);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::InvalidArgument || conversation_.turns().empty()) throw;
      raise(ErrorCode::InvalidArgument, "{}; /reset begins a new one", error.what());
    }
    if (!ends_in_newline) out_.write("\n");
    if (answer.context_is_full)
      note("the context is full, so the answer ends here; /reset begins a new conversation");
    else if (answer.finish_reason == FinishReason::Length)
      note("the answer ends here for --max-tokens");
    else if (answer.finish_reason == FinishReason::Cancelled)
      note("stopped");
  }

  const Output& out_;
  const Output& err_;
  bool is_interactive_;
  bool all_went_well_ = true;
  Conversation conversation_;
  InterruptGuard& interrupts_;
  Inputs inputs_;
};

void chat(const Context& context, const Arguments& args) {
  args.validate();
  EngineOptions options = args.engine.options();
  const std::filesystem::path path = model_path(context, args.model);
  Inputs inputs;
  inputs.add_model(path);
  inputs.add_standard_input();
  LoadedModel model = [&] {
    const InterruptGuard while_loading;
    return args.engine.load(context, path, while_loading, {.generation = args.sampling.need_of_file()});
  }();
  const auto warning = model.files->foreign_chat_format(model.require_tokenizer());
  options.pool_tokens = args.context_tokens ? require_context(*args.context_tokens, model)
                                            : std::min(kDefaultContext, model.config().model_max_length);
  GenerationParams params;
  params.sampling = args.sampling.params(model.generation, model.files->generation_file());
  params.max_new_tokens = args.max_tokens;

  Engine engine(std::move(model), options);
  InterruptGuard interrupts(InterruptGuard::CtrlC::Asks);
  Chat talk(context, interrupts, engine, std::move(params), args.system.value_or(""), std::move(inputs));
  // Not before: a tokeniser without the chat format's tokens is an error, which says the same.
  if (warning) context.err.print("kilin: {}\n", *warning);
  if (!talk.run()) throw FailureWasTold();
}

}  // namespace

void add_chat(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("chat", "Talk with a model");
  command->footer(std::string("In the chat:\n") + kChatCommands +
                  "\n\nExamples:\n"
                  "  kilin chat\n"
                  "  kilin chat MODEL --system 'Answer in one sentence.' --temp 0.3\n"
                  "  printf 'Hello\\n/save talk.json\\n' | kilin chat MODEL");
  const auto args = std::make_shared<Arguments>();
  add_model(*command, args->model);
  add_text(*command, "--system", "TEXT", "a message", args->system, "System message");
  add_unsigned(*command, "-n,--max-tokens", args->max_tokens, "Most tokens of one answer (default: 1024)", {.min = 1});
  add_unsigned(*command, "--ctx", args->context_tokens,
               "Tokens that a conversation may have (default: 32768, or what the model was made for, if that is less)",
               {.min = 1});
  args->sampling.add_to(*command);
  args->engine.add_to(*command);
  command->callback([&context, args] { context.run = [&context, args] { chat(context, *args); }; });
}

}  // namespace kilin::cli

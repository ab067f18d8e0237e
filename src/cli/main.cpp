// kilin: reads the command line, runs one command, and turns what went wrong into a line on standard error and an exit code.
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/terminal/interrupt.h"
#include "core/error.h"
#include "core/mapped_ranges.h"
#include "core/version.h"

namespace kilin::cli {

namespace {

enum ExitCode { kSuccess = 0, kFailure = 1, kUsage = 2 };

// The embedded model lies at the same place beside the program in the build tree and where it was installed.
std::filesystem::path embedded_model() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "share/kilin/models/tiny";
}

int fail(const Context& context, int code, std::string_view message) {
  context.err.print("kilin: {}\n", displayable(message));
  return code;
}

void describe_program(CLI::App& app, Context& context) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(version()), "Print the version");
  app.set_help_flag("-h,--help", "Print this help");
  app.get_formatter()->column_width(34);
  add_generate(app, context);
  add_chat(app, context);
  add_tokenize(app, context);
  add_logits(app, context);
  add_trace(app, context);
  add_lens(app, context);
  add_quantize(app, context);
  add_perplexity(app, context);
  add_inspect(app, context);
  add_verify(app, context);
  add_synth(app, context);
  add_bench(app, context);
  add_info(app, context);
  // After the commands, which would inherit it.
  app.footer(
      "MODEL is a folder as Hugging Face has it, or a GGUF file; left out, it is the tiny model that comes with Kilin.\n"
      "`kilin COMMAND --help` says more about a command. Exit codes: 0, 1 for a failure, 2 for wrong usage.");
}

int run(int argc, char** argv) {
  prepare_standard_streams();
  explain_lost_mapped_files();
  Context context;
  try {
    const std::vector<std::string> typed(argv + std::min(argc, 1), argv + argc);
    context.tiny_model = embedded_model();
    CLI::App app("Kilin runs Kimi-Linear models on CPUs.", "kilin");
    describe_program(app, context);
    if (typed.empty()) {
      context.out.write(help_of(app));
      return kUsage;
    }
    std::vector<std::string> arguments = prepared_arguments(app, typed);
    std::ranges::reverse(arguments);  // as CLI11 wants them
    try {
      app.parse(std::move(arguments));
    } catch (const CLI::CallForVersion&) {
      context.out.print("kilin {}\n", version());
      return kSuccess;
    } catch (const CLI::Success&) {
      context.out.write(help_of(app));
      return kSuccess;
    } catch (const CLI::ParseError& error) {
      const std::string unexpected = unexpected_arguments(app);
      return fail(context, kUsage,
                  fmt::format("{}; `{} --help` says more", unexpected.empty() ? error.what() : "not expected: " + unexpected,
                              command_name(app)));
    }
    context.run();
    return kSuccess;
  } catch (const ReaderGone&) {
    return kFailure;
  } catch (const FailureWasTold& failure) {
    return failure.exit_code;
  } catch (const Interrupted& interrupted) {
    return fail(context, interrupted.exit_code(), "interrupted");
  } catch (const Error& error) {
    return fail(context, error.code() == ErrorCode::InvalidArgument ? kUsage : kFailure, error.what());
  } catch (const std::bad_alloc&) {
    return fail(context, kFailure, "out of memory");
  } catch (const std::exception& error) {
    return fail(context, kFailure, error.what());
  }
}

}  // namespace

}  // namespace kilin::cli

int main(int argc, char** argv) { return kilin::cli::run(argc, argv); }

// kilin verify: whether a model's folder is whole, and whether it computes what it should.
#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/options.h"
#include "cli/report/json_line.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "inside/verify/verify.h"

namespace kilin::cli {

namespace {

constexpr size_t kDetailsShown = 20;  // of one check; --json shows all

struct Arguments {
  std::optional<std::string> model, pack_cache;
  std::optional<uint64_t> threads;
  std::optional<uint64_t> tokens;
  bool files_only = false, json = false;
};

void print(const Output& out, const Check& check) {
  const std::string outcome = check.outcome == Outcome::Failed ? "FAILED" : std::string(to_string(check.outcome));
  out.print("{:<8} {:<20} {}\n", outcome, check.name, displayable(check.summary));
  for (size_t i = 0; i < std::min(check.details.size(), kDetailsShown); ++i)
    out.print("{:29} {}\n", "", displayable(check.details[i]));
  if (check.details.size() > kDetailsShown) out.print("{:29} and {} more\n", "", check.details.size() - kDetailsShown);
}

nlohmann::ordered_json to_json(const std::vector<Check>& checks) {
  auto list = nlohmann::ordered_json::array();
  for (const Check& check : checks)
    list.push_back(
        {{"name", check.name}, {"outcome", to_string(check.outcome)}, {"summary", check.summary}, {"details", check.details}});
  return list;
}

// A bar for one check at a time.
class Progresses {
 public:
  explicit Progresses(const Output& err) : err_(err) {}
  void update(std::string_view name, uint64_t done, uint64_t total) {
    if (name != name_) {
      bar_.reset();
      name_ = name;
      bar_ = std::make_unique<Progress>(err_, name_);
    }
    bar_->update(done, total);
  }
  void erase() {
    bar_.reset();
    name_.clear();
  }

 private:
  Output err_;
  std::string name_;
  std::unique_ptr<Progress> bar_;
};

void verify(const Context& context, const Arguments& arguments) {
  if (arguments.files_only && arguments.tokens)
    raise(ErrorCode::InvalidArgument, "--files-only runs nothing, so there is no answer for --max-tokens {} to limit",
          *arguments.tokens);
  const std::filesystem::path path = model_path(context, arguments.model);
  Progresses progresses(context.err);
  const InterruptGuard interrupts;
  const CheckReporter::Listener listener = {.done =
                                                [&](const Check& check) {
                                                  interrupts.check();
                                                  progresses.erase();
                                                  if (!arguments.json) print(context.out, check);
                                                },
                                            .progress =
                                                [&](std::string_view name, uint64_t done, uint64_t total) {
                                                  interrupts.check();
                                                  progresses.update(name, done, total);
                                                }};
  const auto checks =
      verify_model(path,
                   {.threads = thread_count(arguments.threads),
                    .tokens = arguments.tokens.value_or(VerifyOptions().tokens),
                    .run = arguments.files_only ? VerifyOptions::Run::FilesOnly : VerifyOptions::Run::Everything,
                    .pack_cache = arguments.pack_cache ? PackPlacement::parse(*arguments.pack_cache) : PackPlacement()},
                   listener);
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"model", path.string()}, {"ok", all_good(checks)}, {"checks", to_json(checks)}};
    context.out.write(json_line(json));
  }
  if (!all_good(checks))
    raise(ErrorCode::Corrupt, "{}: {} of {} checks failed", path.string(),
          std::ranges::count(checks, Outcome::Failed, &Check::outcome), checks.size());
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("verify", "Check a model: files, tensors, every value, tokenizer, and what it answers");
  const auto arguments = std::make_shared<Arguments>();
  add_model(*command, arguments->model);
  add_unsigned(*command, "-n,--max-tokens", arguments->tokens, "Tokens of the answer (default: 32)", {.min = 1});
  command->add_flag("--files-only", arguments->files_only, "Do not run the model");
  add_text(*command, "--pack-cache", "WHERE", "auto, off or a folder", arguments->pack_cache,
           "Where packed weights were kept, which are checked too: a folder, off, or auto (default)");
  add_threads(*command, arguments->threads, "Threads that compute");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([&context, arguments] { context.run = [&context, arguments] { verify(context, *arguments); }; });
}

}  // namespace kilin::cli

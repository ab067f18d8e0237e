// kilin bench: how fast a model runs on this machine, beside what the machine could give.
#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/engine_options.h"
#include "cli/options/options.h"
#include "cli/report/bench_report.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/error.h"

namespace kilin::cli {

namespace {

constexpr const char* kFooter =
    "Peaks of arithmetic and of reading from memory are measured right before and after every row, because a machine drifts.\n"
    "  prompt      share of the peak of what multiplies the weights (int8, bf16 or fp32)\n"
    "  depth       one sequence after so many tokens; bound: the bytes of a token (active weights, KDA states read and\n"
    "              written, latents) at full bandwidth, and then the attention over the past at its peak (bf16 or fp32)\n"
    "  sequences   several at once; the same bound, experts counted that were really asked\n"
    "A list may be none. What was not asked for is shortened, or left out, where the model has fewer positions. "
    "docs/performance.md says more.\n"
    "\n"
    "Examples:\n"
    "  kilin bench\n"
    "  kilin bench MODEL.gguf --prompt 512,2048 --depth 0,4096,32768 --profile\n"
    "  kilin bench MODEL.gguf --prompt 512 --depth 0 --batch none --repeat 5 --json";

struct Arguments {
  std::optional<std::string> model;
  BenchPlan plan;
  BenchPlan::Defaulted defaulted;
  std::optional<uint64_t> seed;
  std::optional<std::string> past;
  EngineFlags engine;
  bool profile = false;
  bool json = false;

  BenchPlan finished_plan() const {
    BenchPlan finished = plan;
    if (seed) finished.seed = *seed;
    if (past == "prompt") finished.past = PastBy::Prompt;
    if (past == "noise") finished.past = PastBy::Noise;
    if (profile) finished.times = BenchPlan::Times::Stages;
    return finished;
  }
};

// Rows as they come, a table's head before its first; and a bar on a terminal.
class Tables {
 public:
  Tables(const Context& context, BenchReport& report, bool json)
      : context_(context), report_(report), json_(json), bar_(context.err, "measuring") {}

  void open() {
    bar_.erase();
    if (!json_) context_.out.write(report_.opening());
  }
  void show_progress() {
    const BenchPlan& plan = report_.plan;
    bar_.update(report_.rows.size(), plan.prompts.size() + plan.depths.size() + plan.batches.size());
  }
  void add(BenchRow row) {
    const bool is_first = report_.rows.empty() || report_.rows.back().work != row.work;
    report_.rows.push_back(std::move(row));
    const BenchRow& added = report_.rows.back();
    bar_.erase();
    if (!json_) context_.out.write((is_first ? report_.head(added.work) : "") + report_.line(added) + report_.stages(added));
  }
  void close() { context_.out.write(json_ ? report_.json() + "\n" : report_.closing()); }

 private:
  const Context& context_;
  BenchReport& report_;
  bool json_;
  Progress bar_;
};

void bench(const Context& context, const Arguments& args) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto seconds = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  BenchPlan plan = args.finished_plan();
  EngineOptions options = args.engine.options();
  options.drive = EngineOptions::Drive::ByCaller;  // what is timed is the steps, one by one

  const InterruptGuard interrupts;
  LoadedModel model = args.engine.load(context, model_path(context, args.model), interrupts,
                                       {.tokenizer = Need::Optional, .generation = Need::Optional});
  plan.shorten(args.defaulted, model.config().model_max_length);
  plan.require_length(model.config().model_max_length);
  options.max_sequences = plan.max_sequences();
  options.pool_tokens = plan.pool_tokens();
  Engine engine(std::move(model), options);
  BenchReport report = {.engine = engine, .plan = plan, .load_s = seconds()};
  const uint64_t available = MemoryInfo::detect().available;
  const size_t probe_bytes = MachineProbe::suitable_bytes_per_thread(available, engine.threads());
  plan.require_memory(engine.plan(), available - std::min(available, probe_bytes * engine.threads()));

  Tables tables(context, report, args.json);
  Bench bench(engine, plan, [&] {
    interrupts.check();
    tables.show_progress();
  });
  bench.first_token_s();
  report.first_token_s = seconds();
  bench.prepare(probe_bytes);
  report.probe_bytes = bench.probe_bytes();
  tables.open();
  for (size_t tokens : plan.prompts) tables.add(bench.prompt(tokens));
  for (size_t depth : plan.depths) tables.add(bench.generation(depth));
  for (size_t sequences : plan.batches) tables.add(bench.batch(sequences));
  tables.close();
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a model runs here, beside what the machine could give");
  command->footer(kFooter);
  const auto args = std::make_shared<Arguments>();
  BenchPlan& plan = args->plan;
  add_model(*command, args->model);
  add_unsigned_list(*command, "--prompt", plan.prompts, "Prompts to read, tokens (default: 512)", {1, BenchPlan::kMostTokens});
  add_unsigned_list(*command, "--depth", plan.depths, "Tokens before those that are generated (default: 0,4096)",
                    {0, BenchPlan::kMostTokens});
  add_unsigned_list(*command, "--batch", plan.batches, "Sequences to generate at once (default: 1,8)",
                    {1, BenchPlan::kMostSequences});
  add_unsigned(*command, "--generate", plan.generate, "Tokens to generate, of each sequence and repeat (default: 32)",
               {1, BenchPlan::kMostGenerated});
  add_unsigned(*command, "--repeat", plan.repeat,
               "How often to measure each row: median, least and most are shown (default: 3)", {1, BenchPlan::kMostRepeats});
  add_choice(*command, "--past", {"auto", "prompt", "noise"}, args->past,
             "What --depth stands on: a prompt that is read, or noise in its place, which takes no time; auto (default): noise "
             "where a prompt would take more than 10 s");
  command->add_flag("--profile", args->profile, "Show time, bytes, operations and share of every stage of the forward pass");
  command->add_flag("--json", args->json, "Print one JSON object");
  args->engine.add_to(*command);
  add_unsigned(*command, "--seed", args->seed, "Seed of ids, of what is drawn, and of noise (default: 1)")->group("Running");
  command->callback([&context, args, command] {
    const auto is_default = [command](const char* option) { return command->count(option) == 0; };
    args->defaulted = {.prompts = is_default("--prompt"),
                       .depths = is_default("--depth"),
                       .batches = is_default("--batch"),
                       .generate = is_default("--generate")};
    context.run = [&context, args] { bench(context, *args); };
  });
}

}  // namespace kilin::cli

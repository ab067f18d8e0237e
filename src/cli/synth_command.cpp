// kilin synth: a checkpoint of random weights.
#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/figures.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "core/error.h"
#include "model/synthetic_checkpoint.h"

namespace kilin::cli {

namespace {

struct Arguments {
  std::string out, config;
  std::optional<uint64_t> layers, experts, threads;
  size_t seed = 0;
  std::string dtype = "bf16", shard_size = "5GB";
  std::optional<std::string> tokenizer;
  bool force = false, json = false;
};

SyntheticCheckpoint checkpoint_of(const Arguments& arguments) {
  SyntheticCheckpoint checkpoint;
  checkpoint.config = arguments.config;
  if (arguments.tokenizer) checkpoint.tokenizer = *arguments.tokenizer;
  if (arguments.layers) checkpoint.shape.layers = *arguments.layers;
  if (arguments.experts) checkpoint.shape.experts = *arguments.experts;
  if (arguments.dtype != "bf16" && arguments.dtype != "f32")
    raise(ErrorCode::InvalidArgument, "--dtype {} is not known; bf16 and f32 are", printable(arguments.dtype));
  checkpoint.shape.dtype = arguments.dtype == "f32" ? DType::f32 : DType::bf16;
  checkpoint.seed = arguments.seed;
  checkpoint.max_shard_bytes = parse_bytes("--shard-size", arguments.shard_size);
  if (arguments.force) checkpoint.existing = SyntheticCheckpoint::Existing::Replace;
  return checkpoint;
}

void synthesize(const Context& context, const Arguments& arguments) {
  const SyntheticCheckpoint checkpoint = checkpoint_of(arguments);
  const auto start = std::chrono::steady_clock::now();
  SyntheticCheckpoint::Size size;
  {
    ThreadPool pool(thread_count(arguments.threads));
    Progress progress(context.err, "writing");
    const InterruptGuard interrupts;
    size = checkpoint.write(arguments.out, pool, [&](uint64_t done, uint64_t total) {
      interrupts.check();
      progress.update(done, total);
    });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"folder", arguments.out},
                                         {"tensors", size.tensors},
                                         {"parameters", size.parameters},
                                         {"bytes", size.bytes},
                                         {"seconds", seconds}};
    context.out.write(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  context.out.print("{}: {} tensors, {} parameters, {} in {:.1f} s\n", arguments.out, with_commas(size.tensors),
                    with_commas(size.parameters), human_bytes(size.bytes), seconds);
}

}  // namespace

void add_synth(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("synth", "Write a checkpoint of random weights, for tests and benchmarks");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("OUT", arguments->out, "Folder to write, new or empty")->required()->type_name("");
  command->add_option("--config", arguments->config, "config.json of the shape, or a folder that holds one")
      ->required()
      ->type_name("FILE");
  add_unsigned(*command, "--layers", arguments->layers, "Cut it to N layers, of every kind that it has");
  add_unsigned(*command, "--experts", arguments->experts, "Cut it to N experts a layer");
  add_unsigned(*command, "--seed", arguments->seed, "Other weights for another number (default: 0)");
  command->add_option("--dtype", arguments->dtype, "Of the weights: bf16 or f32 (default: bf16)")->type_name("TYPE");
  command->add_option("--shard-size", arguments->shard_size, "Most bytes of weights a file (default: 5GB)")->type_name("SIZE");
  command->add_option("--tokenizer", arguments->tokenizer, "Folder whose tokenizer files are copied")->type_name("FOLDER");
  command->add_flag("--force", arguments->force, "Replace the checkpoint that OUT holds");
  add_unsigned(*command, "--threads", arguments->threads,
               "Threads that make numbers; no byte depends on them (default: as many as this process may use)");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([&context, arguments] { context.run = [&context, arguments] { synthesize(context, *arguments); }; });
}

}  // namespace kilin::cli

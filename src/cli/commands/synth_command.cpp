// kilin synth: a checkpoint of random weights.
#include <CLI/App.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/inputs.h"
#include "cli/options/options.h"
#include "cli/report/figures.h"
#include "cli/report/json_line.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "config/model_config.h"
#include "core/error.h"
#include "core/file.h"
#include "synthetic/synthetic_checkpoint.h"

namespace kilin::cli {

namespace {

struct Arguments {
  std::optional<std::string> out, config;
  std::optional<uint64_t> layers, experts, threads;
  size_t seed = 0;
  std::optional<std::string> dtype, shard_size, tokenizer;
  bool force = false, json = false;
};

ModelConfig read_shape(const std::filesystem::path& config) {
  const auto file = std::filesystem::is_directory(config) ? config / "config.json" : config;
  return ModelConfig::parse(read_file(file), file.string());
}

// Before anything is written, and in the words of the command line.
void validate(const Arguments& arguments) {
  const ModelConfig config = read_shape(*arguments.config);
  if (arguments.layers && *arguments.layers > config.num_hidden_layers)
    raise(ErrorCode::InvalidArgument, "--layers is {}; expected 1 to {}, the num_hidden_layers of {}", *arguments.layers,
          config.num_hidden_layers, *arguments.config);
  if (arguments.experts && *arguments.experts > config.num_experts)
    raise(ErrorCode::InvalidArgument, "--experts is {}; expected 1 to {}, the num_experts of {}", *arguments.experts,
          config.num_experts, *arguments.config);
}

SyntheticCheckpoint checkpoint_of(const Arguments& arguments) {
  SyntheticCheckpoint checkpoint;
  checkpoint.config = *arguments.config;
  if (arguments.tokenizer) checkpoint.tokenizer = *arguments.tokenizer;
  if (arguments.layers) checkpoint.shape.layers = *arguments.layers;
  if (arguments.experts) checkpoint.shape.experts = *arguments.experts;
  checkpoint.shape.dtype = arguments.dtype == "f32" ? DType::f32 : DType::bf16;
  checkpoint.seed = arguments.seed;
  checkpoint.max_shard_bytes = parse_bytes("--shard-size", arguments.shard_size.value_or("5GB"));
  if (arguments.force) checkpoint.existing = SyntheticCheckpoint::Existing::Replace;
  return checkpoint;
}

void synthesize(const Context& context, const Arguments& arguments) {
  const SyntheticCheckpoint checkpoint = checkpoint_of(arguments);
  validate(arguments);
  Inputs inputs;
  inputs.add_model(*arguments.config);
  if (arguments.tokenizer) inputs.add_model(*arguments.tokenizer);
  inputs.require_other_in("OUT", *arguments.out);
  const auto start = std::chrono::steady_clock::now();
  SyntheticCheckpoint::Size size;
  {
    ThreadPool pool(thread_count(arguments.threads));
    Progress progress(context.err, "writing");
    const InterruptGuard interrupts;
    size = checkpoint.write(*arguments.out, pool, [&](uint64_t done, uint64_t total) {
      interrupts.check();
      progress.update(done, total);
    });
  }
  const size_t before = read_shape(*arguments.config).num_experts_per_token;
  const size_t after = ModelConfig::read(*arguments.out).num_experts_per_token;
  if (after < before)
    context.err.print("kilin: num_experts_per_token is {} instead of {}, for there are no more experts\n", after, before);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"folder", *arguments.out},
                                         {"tensors", size.tensors},
                                         {"parameters", size.parameters},
                                         {"bytes", size.bytes},
                                         {"seconds", rounded(seconds)}};
    context.out.write(json_line(json));
    return;
  }
  context.out.print("{}: {} tensors, {} parameters, {} in {:.1f} s\n", displayable(*arguments.out), with_commas(size.tensors),
                    with_commas(size.parameters), human_bytes(size.bytes), seconds);
}

}  // namespace

void add_synth(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("synth", "Write a checkpoint of random weights, for tests and benchmarks");
  const auto arguments = std::make_shared<Arguments>();
  add_text(*command, "OUT", "", "the folder to write", arguments->out, "Folder to write, new or empty")->required();
  add_text(*command, "--config", "FILE", "a config.json or its folder", arguments->config,
           "config.json of the shape, or a folder that holds one")
      ->required();
  add_unsigned(*command, "--layers", arguments->layers, "Cut it to N layers, of every kind that it has", {.min = 1});
  add_unsigned(*command, "--experts", arguments->experts, "Cut it to N experts a layer", {.min = 1});
  add_unsigned(*command, "--seed", arguments->seed, "Other weights for another number (default: 0)");
  add_choice(*command, "--dtype", {"bf16", "f32"}, arguments->dtype, "Of the weights: bf16 or f32 (default: bf16)");
  add_text(*command, "--shard-size", "SIZE", "bytes, as in 5GB, 500MB or 1000000", arguments->shard_size,
           "Most bytes of weights a file (default: 5GB)");
  add_text(*command, "--tokenizer", "FOLDER", "a folder", arguments->tokenizer, "Folder whose tokenizer files are copied");
  command->add_flag("--force", arguments->force, "Replace the checkpoint that OUT holds");
  add_threads(*command, arguments->threads, "Threads that make numbers; no byte depends on them");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([&context, arguments] { context.run = [&context, arguments] { synthesize(context, *arguments); }; });
}

}  // namespace kilin::cli

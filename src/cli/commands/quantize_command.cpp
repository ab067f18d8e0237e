// kilin quantize: a model as one GGUF file with smaller weights.
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
#include "core/error.h"
#include "loading/export_source.h"
#include "text/utf8.h"

namespace kilin::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPlain = "bf16";

constexpr const char* kFooter =
    "The file is of the form that llama.cpp reads. What does not bear rounding stays as it is: the router, norms, decays,\n"
    "convolutions and the narrow matrices of the gates. docs/quantisation.md has the quality of each type.\n"
    "\n"
    "Examples:\n"
    "  kilin quantize MODEL model-Q4_K_M.gguf --type q4_k_m\n"
    "  kilin quantize model-bf16.gguf model-Q8_0.gguf --type q8_0";

struct Arguments {
  std::optional<std::string> source, out, type, rounding, name;
  std::optional<uint64_t> threads;
  bool force = false, kilin_only = false, json = false;
};

void check_target(const fs::path& source, const fs::path& out, bool force) {
  Inputs inputs;
  inputs.add_model(source);
  inputs.require_other("DST", out);
  std::error_code ignored;
  if (!force && fs::exists(out, ignored))
    raise(ErrorCode::InvalidArgument, "{}: is there already; --force replaces it", out.string());
}

GgufExportOptions export_options(const Arguments& args) {
  GgufExportOptions options;
  if (*args.type != kPlain) options.type = parse_quant_type(*args.type);
  if (args.rounding == "nearest") options.rounding = Rounding::Nearest;
  if (args.kilin_only) options.readers = GgufReaders::KilinOnly;
  if (args.name) require_utf8(*args.name, "--name");
  options.name = args.name.value_or(replace_broken_utf8(fs::absolute(*args.source).lexically_normal().stem().string()));
  return options;
}

void quantize(const Context& context, const Arguments& args) {
  const fs::path out = *args.out;
  const auto files = ModelFiles::open(*args.source);
  const auto start = std::chrono::steady_clock::now();
  const GgufExport gguf(export_source(*files), export_options(args));
  check_target(*args.source, out, args.force);
  uint64_t parameters = 0;
  for (const auto& tensor : gguf.tensors()) parameters += tensor.shape.elements();
  {
    ThreadPool pool(thread_count(args.threads));
    Progress bar(context.err, "quantising");
    const InterruptGuard interrupts;
    gguf.write(out, pool, [&](uint64_t done, uint64_t total) {
      interrupts.check();
      bar.update(done, total);
    });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const uint64_t bytes = fs::file_size(out);
  const double bits = 8 * static_cast<double>(bytes) / static_cast<double>(parameters);
  if (args.json) {
    const nlohmann::ordered_json json = {{"file", out.string()},
                                         {"type", *args.type},
                                         {"tensors", gguf.tensors().size()},
                                         {"parameters", parameters},
                                         {"bytes", bytes},
                                         {"bits_per_weight", bits},
                                         {"seconds", seconds},
                                         {"threads", thread_count(args.threads)}};
    context.out.write(json_line(json));
  } else {
    context.out.print("{}: {}, {} tensors, {} ({:.2f} bits a weight), {:.1f} s\n", displayable(out.string()), *args.type,
                      gguf.tensors().size(), human_bytes(bytes), bits, seconds);
  }
}

}  // namespace

void add_quantize(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("quantize", "Write a model as a GGUF file with smaller weights");
  command->footer(kFooter);
  const auto args = std::make_shared<Arguments>();
  add_text(*command, "SRC", "", "a model: a folder or a GGUF file", args->source, "The model: a folder or a GGUF file")
      ->required();
  add_text(*command, "DST", "", "the file to write", args->out, "The GGUF file to write; it appears whole or not at all")
      ->required();
  std::vector<std::string> types = quant_type_names();
  types.emplace_back(kPlain);
  add_choice(*command, "--type", types, args->type,
             fmt::format("What the large matrices become: bf16, {}", known_quant_types()))
      ->required();
  add_choice(*command, "--rounding", {"searched", "nearest"}, args->rounding,
             "searched: of several scales a block the one with the least error (default); nearest: the plain rule");
  add_text(*command, "--name", "NAME", "a name", args->name, "The model's name in the file (default: that of SRC)");
  command->add_flag("--force", args->force, "Replace DST if it is there");
  command->add_flag("--kilin-only", args->kilin_only, "Write a model that llama.cpp would run wrongly, for Kilin alone");
  add_threads(*command, args->threads, "Threads that quantise");
  command->add_flag("--json", args->json, "Print one JSON object");
  command->callback([&context, args] { context.run = [&context, args] { quantize(context, *args); }; });
}

}  // namespace kilin::cli

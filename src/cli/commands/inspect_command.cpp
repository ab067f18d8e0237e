// kilin inspect: what a model is made of, and whether it will fit here.
#include <CLI/App.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/options.h"
#include "cli/report/inspection.h"
#include "cli/report/json_line.h"
#include "core/error.h"

namespace kilin::cli {

namespace {

struct Arguments {
  std::optional<std::string> model;
  std::optional<uint64_t> layer, threads;
  bool all = false, json = false;
};

void write(const Output& out, const nlohmann::ordered_json& json) { out.write(json_line(json)); }

void inspect_layer(const Context& context, const Arguments& arguments, const std::filesystem::path& path) {
  ThreadPool pool(thread_count(arguments.threads));
  const LayerInspection inspection = LayerInspection::of(path, *arguments.layer, pool);
  if (arguments.json)
    write(context.out, inspection.json());
  else
    context.out.write(inspection.text(arguments.all ? Alike::Apart : Alike::Together));
  if (!inspection.faults.empty())
    raise(ErrorCode::Corrupt, "{}: layer {} has {} faults", path.string(), *arguments.layer, inspection.faults.size());
}

void inspect(const Context& context, const Arguments& arguments) {
  const std::filesystem::path path = model_path(context, arguments.model);
  if (arguments.layer) return inspect_layer(context, arguments, path);
  const Inspection inspection = Inspection::of(path, thread_count(arguments.threads));
  const Alike alike = arguments.all ? Alike::Apart : Alike::Together;
  if (arguments.json)
    write(context.out, inspection.json(alike));
  else
    context.out.write(inspection.text(alike));
  if (const std::string faults = inspection.faults(); !faults.empty())
    raise(ErrorCode::Corrupt, "{}: its tensors are not those of a whole model: {}", path.string(), faults);
}

}  // namespace

void add_inspect(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("inspect", "Show a model's modules, tensors and layers, and the memory that it takes");
  const auto arguments = std::make_shared<Arguments>();
  add_model(*command, arguments->model);
  command->add_flag("--all", arguments->all, "Show every layer and expert, also where they are alike");
  add_unsigned(*command, "--layer", arguments->layer,
               "Read one layer (from 0), every value of it; files that hold none of it need not be there");
  add_threads(*command, arguments->threads, "Threads to plan for, and to read with");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([&context, arguments] { context.run = [&context, arguments] { inspect(context, *arguments); }; });
}

}  // namespace kilin::cli

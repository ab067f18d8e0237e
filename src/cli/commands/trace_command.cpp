// kilin trace: inner values of a pass, as NumPy files.
#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint/npy.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/engine_options.h"
#include "cli/options/options.h"
#include "cli/options/prompt_options.h"
#include "cli/report/json_line.h"
#include "cli/terminal/interrupt.h"
#include "core/error.h"
#include "inside/trace/trace.h"
#include "loading/model_files.h"

namespace kilin::cli {

namespace {

constexpr const char* kFooter =
    "NAME is one that --list shows, or a path of the checkpoint with .output behind it. The prompt is step 0; with -n, step t\n"
    "feeds the t-th token that was generated, greedily.\n"
    "\n"
    "Examples:\n"
    "  kilin trace MODEL --list\n"
    "  kilin trace -p 'The whale' --save layers.3.layer_output=out.npy --save "
    "layers.3.self_attn.attention_probabilities=p.npy\n"
    "  kilin trace --ids 5,17,9 -n 4 --step 2 --save layers.1.linear_attn.state_output=state.npy --json";

struct Arguments {
  std::optional<std::string> model;
  PromptFlags prompt;
  EngineFlags engine;
  std::vector<std::string> saves;
  std::optional<uint64_t> new_tokens, step, seed;
  bool list = false, json = false;
};

struct Save {
  std::string name, file;
};

std::vector<Save> parse_saves(const std::vector<std::string>& texts) {
  std::vector<Save> saves;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size())
      raise(ErrorCode::InvalidArgument, "--save is '{}'; expected NAME=FILE", printable(text));
    Save save = {text.substr(0, at), text.substr(at + 1)};
    if (std::ranges::find(saves, save.file, &Save::file) != saves.end())
      raise(ErrorCode::InvalidArgument, "--save names the file '{}' twice; expected one for each value", printable(save.file));
    saves.push_back(std::move(save));
  }
  return saves;
}

void list_values(const Context& context, const Arguments& args) {
  if (args.prompt.given() || !args.saves.empty() || args.new_tokens || args.step)
    raise(ErrorCode::InvalidArgument, "--list runs nothing: it takes neither a prompt nor --save, -n or --step");
  const ModelConfig config = ModelFiles::open(model_path(context, args.model))->config();
  const std::vector<OfferedValue> offered = support(block_kinds(config));
  if (args.json) {
    auto values = nlohmann::ordered_json::array();
    for (const OfferedValue& o : offered)
      values.push_back({{"name", o.name}, {"shape", o.shape}, {"writable", o.writable}, {"staged", o.staged}});
    context.out.write(json_line({{"values", values}}));
    return;
  }
  Page page;
  for (const OfferedValue& o : offered)
    page.print("{:<52}{}{}{}\n", o.name, o.shape, o.writable ? "" : "  read only", o.staged ? "  staged" : "");
  context.out.write(page.text());
}

bool holds_nan(const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return false;
  return std::any_of(tensor.as<float>(), tensor.as<float>() + tensor.elements(), [](float x) { return std::isnan(x); });
}

std::string file_type(DType dtype) { return dtype == DType::i32 ? "int32" : "float32"; }

void write_values(const Context& context, Arguments& args) {
  const std::vector<Save> saves = parse_saves(args.saves);
  if (saves.empty()) raise(ErrorCode::InvalidArgument, "there is nothing to do; expected --save NAME=FILE or --list");
  EngineOptions options = args.engine.options();
  options.pool_tokens = 1;  // a trace brings memory of its own
  const std::filesystem::path path = model_path(context, args.model);
  Inputs inputs;
  inputs.add_model(path);
  args.prompt.add_to(inputs);
  for (const Save& save : saves) inputs.require_other("--save", save.file);
  args.prompt.resolve();
  const std::vector<BlockKind> blocks = block_kinds(ModelFiles::open(path)->config());
  for (const Save& save : saves) find_site(save.name, blocks);  // before the weights are read

  const InterruptGuard interrupts;
  Engine engine(args.engine.load(context, path, interrupts, {args.prompt.need_of_tokenizer(), Need::Optional}), options);
  const std::vector<int32_t> ids = args.prompt.encode(engine.loaded());
  // As generate: no more than there is room for. The last one is not fed.
  const size_t room = engine.config().model_max_length - std::min(ids.size() - 1, engine.config().model_max_length);
  Trace trace(engine, {{ids}},
              {.new_tokens = std::min<size_t>(args.new_tokens.value_or(0), room), .sampling = {}, .on_token = {}, .poll = [&] {
                 interrupts.check();
               }});
  std::vector<std::shared_ptr<const SavedValue>> values;
  values.reserve(saves.size());
  for (const Save& save : saves) values.push_back(trace.save(save.name, args.step.value_or(0)));
  const TraceResult result = trace.run();

  auto written = nlohmann::ordered_json::array();
  for (size_t i = 0; i < saves.size(); ++i) {
    if (!values[i]->has(0))
      raise(ErrorCode::NotFound, "{} of step {}: there is none; a fresh prompt has no state yet", values[i]->name(),
            values[i]->moment().step);
    const Tensor& tensor = values[i]->of(0);
    write_npy(saves[i].file, tensor);
    if (args.json)
      written.push_back({{"name", values[i]->name()},
                         {"step", values[i]->moment().step},
                         {"file", saves[i].file},
                         {"dtype", file_type(tensor.dtype())},
                         {"shape", std::vector<size_t>(tensor.shape().begin(), tensor.shape().end())}});
    else
      context.err.print("{}: {} {}\n", displayable(saves[i].file), file_type(tensor.dtype()), to_string(tensor.shape()));
  }
  if (args.json) context.out.write(json_line({{"ids", ids}, {"output_ids", result.output_ids[0]}, {"saved", written}}));
  // After they were written: whoever looks for the fault wants to see them.
  for (const auto& value : values)
    if (holds_nan(value->of(0)))
      raise(ErrorCode::Corrupt, "{} of step {} holds NaN; kilin verify looks for broken weights", value->name(),
            value->moment().step);
}

}  // namespace

void add_trace(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("trace", "Write inner values of a pass to .npy files, by their standard names");
  command->footer(kFooter);
  const auto args = std::make_shared<Arguments>();
  add_model(*command, args->model);
  args->prompt.add_text_and_ids_to(*command);
  command->add_flag("--list", args->list, "Print what this model offers, with shapes; needs its configuration alone");
  add_texts(*command, "--save", args->saves, "NAME=FILE: the value to keep and the file to write; may be given again")
      ->type_name("NAME=FILE");
  add_unsigned(*command, "-n,--max-tokens", args->new_tokens, "Tokens to generate", {1, UINT32_MAX});
  add_unsigned(*command, "--step", args->step, "The step whose values are kept (default: 0, the prompt)");
  command->add_flag("--json", args->json, "Print one JSON object");
  args->engine.add_to(*command);
  add_unsigned(*command, "--seed", args->seed, "Taken as by generate and chat; nothing is drawn here")->group("Running");
  command->callback([&context, args] {
    context.run = [&context, args] { args->list ? list_values(context, *args) : write_values(context, *args); };
  });
}

}  // namespace kilin::cli

// kilin perplexity: how well a model predicts a text, and how far it is from another one's stored predictions.
#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "checkpoint/npy.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/engine_options.h"
#include "cli/options/inputs.h"
#include "cli/options/options.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/file.h"
#include "inside/perplexity/text_score.h"
#include "text/utf8.h"

namespace kilin::cli {

namespace {

constexpr size_t kDefaultWindow = 512;

constexpr const char* kFooter =
    "The text is read in windows from an empty context; every token but the first is predicted once.\n"
    "The base is what another form of the same model said of the same text with the same window, such as its unquantised\n"
    "weights: a .npy file of float32 [predictions, vocab_size], by --save-logits or from elsewhere.\n"
    "\n"
    "Examples:\n"
    "  kilin perplexity MODEL --file text.txt --save-logits base.npy\n"
    "  kilin perplexity MODEL-Q4_K_M.gguf --file text.txt --kl-base base.npy";

struct Arguments {
  std::optional<std::string> model, file, kl_base, save_logits;
  std::optional<uint64_t> window;
  EngineFlags engine;
  bool json = false;
};

struct Report {
  TextScore score;
  std::optional<TextScore> base;  // of the stored predictions
  Divergence divergence;
  size_t window = 0;
  double seconds = 0;
};

nlohmann::ordered_json to_json(const Report& report) {
  nlohmann::ordered_json json = {{"perplexity", report.score.perplexity()},
                                 {"perplexity_error", report.score.perplexity_error()},
                                 {"nll_per_token", report.score.nll()},
                                 {"predictions", report.score.predictions()},
                                 {"window", report.window},
                                 {"tokens_per_s", static_cast<double>(report.score.predictions()) / report.seconds}};
  if (report.base)
    json["kl"] = {{"base_perplexity", report.base->perplexity()},
                  {"mean", report.divergence.mean()},
                  {"p99", report.divergence.quantile(0.99)},
                  {"max", report.divergence.largest()},
                  {"top1_agreement", report.divergence.same_first()}};
  return json;
}

void print(const Output& out, const Report& report) {
  Page page;
  page.print("perplexity      {:.4f} +- {:.4f}   ({:.5f} nats a token; {} predictions, window {})\n", report.score.perplexity(),
             report.score.perplexity_error(), report.score.nll(), report.score.predictions(), report.window);
  if (report.base) {
    page.print("base            {:.4f}\n", report.base->perplexity());
    page.print("KL divergence   {:.6f} mean, {:.6f} 99th percentile, {:.6f} largest (nats)\n", report.divergence.mean(),
               report.divergence.quantile(0.99), report.divergence.largest());
    page.print("same first      {:.2f} % of predictions\n", 100 * report.divergence.same_first());
  }
  page.print("speed           {:.0f} tokens/s\n", static_cast<double>(report.score.predictions()) / report.seconds);
  out.write(page.text());
}

// What stored logits are of, behind them in their file: the window, then the ids of the text.
Tensor note_of(size_t window, std::span<const int32_t> ids) {
  Tensor note(DType::i64, {1 + ids.size()});
  note.as<int64_t>()[0] = static_cast<int64_t>(window);
  std::ranges::copy(ids, note.as<int64_t>() + 1);
  return note;
}

void require_same_text(const Output& err, const std::string& file, const Tensor& note, size_t window,
                       std::span<const int32_t> ids) {
  if (note.empty()) {
    err.print("kilin: --kl-base {} does not say of which text and window its logits are; expected those of this run\n", file);
    return;
  }
  if (note.dtype() != DType::i64 || note.elements() != 1 + ids.size())
    raise(ErrorCode::Corrupt, "--kl-base {}: {} of shape {} follows the logits; expected a window and {} token ids in i64",
          file, to_string(note.dtype()), to_string(note.shape()), ids.size());
  const std::span<const int64_t> values(note.as<int64_t>(), note.elements());
  if (std::cmp_not_equal(values[0], window))
    raise(ErrorCode::InvalidArgument, "--kl-base {} was made with --window {}; expected {}, the window of this run", file,
          values[0], window);
  const auto differs = std::ranges::mismatch(values.subspan(1), ids);
  if (differs.in2 != ids.end())
    raise(ErrorCode::InvalidArgument, "--kl-base {} is of another text: its token {} is {}; expected {}", file,
          differs.in2 - ids.begin(), *differs.in1, *differs.in2);
}

// Stored predictions, held to the text at hand.
NpyMatrix open_base(const Output& err, const std::string& file, size_t vocab_size, size_t window,
                    std::span<const int32_t> ids) {
  const size_t predictions = ids.size() - 1;
  NpyMatrix base(file);
  if (base.rows() != predictions || base.cols() != vocab_size)
    raise(ErrorCode::InvalidArgument,
          "--kl-base {} holds [{}, {}]; expected [{}, {}], the predictions of this text by vocab_size", file, base.rows(),
          base.cols(), predictions, vocab_size);
  require_same_text(err, file, base.note(), window, ids);
  return base;
}

void measure(const Context& context, const Arguments& args) {
  EngineOptions options = args.engine.options();
  const std::filesystem::path path = model_path(context, args.model);
  if (args.save_logits) {
    Inputs inputs;
    inputs.add_model(path);
    inputs.add(*args.file);
    if (args.kl_base) inputs.add(*args.kl_base);
    inputs.require_other("--save-logits", *args.save_logits);
  }
  const std::string text = read_utf8(*args.file);
  const InterruptGuard interrupts;
  LoadedModel model = args.engine.load(context, path, interrupts, {.generation = Need::Optional});
  const std::vector<int32_t> ids = model.require_tokenizer().encode(text);
  if (ids.size() < 2)
    raise(ErrorCode::InvalidArgument, "--file {} has {} tokens; expected at least 2, so that one can be predicted", *args.file,
          ids.size());
  const size_t predictions = ids.size() - 1, vocab_size = model.config().vocab_size;
  const size_t window = args.window.value_or(std::min(kDefaultWindow, model.config().model_max_length));
  if (window > model.config().model_max_length)
    raise(ErrorCode::InvalidArgument, "--window is {}; expected 1 to {}, the model_max_length of {}", window,
          model.config().model_max_length, model.path().string());
  std::optional<NpyMatrix> base;
  if (args.kl_base) base = open_base(context.err, *args.kl_base, vocab_size, window, ids);
  std::optional<NpyWriter> saved;
  if (args.save_logits) saved.emplace(*args.save_logits, predictions, vocab_size);

  options.pool_tokens = window;
  Engine engine(std::move(model), options);
  Report report;
  report.window = window;
  if (base) report.base.emplace();
  std::vector<float> base_row(base ? vocab_size : 0);
  const auto begin = std::chrono::steady_clock::now();
  {
    Progress bar(context.err, "perplexity");
    for_each_prediction(engine, ids, window, [&](size_t prediction, std::span<const float> logits, int32_t next) {
      interrupts.check();
      const Prediction own(logits);
      report.score.add(own.surprise(next));
      if (base) {
        base->read(prediction, base_row);
        const Prediction stored(base_row);
        if (!stored.is_distribution())
          raise(ErrorCode::Corrupt, "--kl-base {}: the logits of prediction {} hold no number", *args.kl_base, prediction);
        report.base->add(stored.surprise(next));
        report.divergence.add(stored, own);
      }
      if (saved) saved->append({logits.data(), 1, vocab_size});
      bar.update(prediction + 1, predictions);
    });
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (saved) saved->commit(note_of(window, ids));
  if (args.json)
    context.out.write(to_json(report).dump() + "\n");
  else
    print(context.out, report);
}

}  // namespace

void add_perplexity(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("perplexity", "Measure how well a model predicts a text, and how far it is from another");
  command->footer(kFooter);
  const auto args = std::make_shared<Arguments>();
  add_model(*command, args->model);
  add_text(*command, "--file", "FILE", "a text file", args->file, "The text: UTF-8")->required();
  add_unsigned(*command, "--window", args->window,
               fmt::format("Tokens read in one go (default: {}, or the model's length if that is less)", kDefaultWindow),
               {.min = 1});
  add_text(*command, "--kl-base", "FILE", "a .npy file", args->kl_base, "Stored logits to compare with");
  add_text(*command, "--save-logits", "FILE", "the file to write", args->save_logits, "Write the logits of every prediction");
  command->add_flag("--json", args->json, "Print one JSON object");
  args->engine.add_to(*command);
  command->callback([&context, args] { context.run = [&context, args] { measure(context, *args); }; });
}

}  // namespace kilin::cli

// kilin tokenize: text to token ids and back.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint/gguf_file.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/options/engine_options.h"
#include "cli/options/options.h"
#include "cli/terminal/input.h"
#include "cli/terminal/terminal_text.h"
#include "core/error.h"
#include "core/json.h"
#include "loading/model_files.h"
#include "loading/tokenizer_fit.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace kilin::cli {

namespace {

constexpr const char* kFooter =
    "MODEL may hold nothing but tiktoken.model; a config.json beside it must have room for every token. Without TEXT, standard "
    "input is read, as it is.\n"
    "\n"
    "Examples:\n"
    "  kilin tokenize MODEL 'The whale'\n"
    "  kilin tokenize -p 'The whale' --json\n"
    "  kilin tokenize MODEL --decode --ids 5,17,9\n"
    "  echo '{\"text\": \"<|im_end|>\", \"special\": true}' | kilin tokenize MODEL --jsonl";

struct Arguments {
  std::optional<std::string> model;
  std::optional<std::string> text;
  std::vector<std::string> texts;
  std::optional<std::string> ids;
  bool decode = false;
  bool jsonl = false;
  bool special = false;
  bool json = false;
  EngineFlags engine;  // taken as by the other commands, so that a script can pass them to all alike
  std::optional<uint64_t> seed;

  void validate() const {
    engine.options();
    if (decode != ids.has_value()) raise(ErrorCode::InvalidArgument, "--decode and --ids IDS belong together");
    const bool has_text = text || !texts.empty();
    if (decode && (jsonl || special || has_text))
      raise(ErrorCode::InvalidArgument, "--decode takes nothing but --ids and --json");
    if (jsonl && (has_text || special || json))
      raise(ErrorCode::InvalidArgument, "--jsonl reads texts and `special` from standard input, and writes JSON already");
  }
};

std::string joined(const std::vector<int32_t>& ids) { return fmt::format("{}", fmt::join(ids, ",")); }

// What the ids' bytes are, one by one; a piece may be a part of a character.
std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (int32_t id : ids) pieces.push_back(replace_broken_utf8(tokenizer.token_bytes(id)));
  return pieces;
}

void decode(const Context& context, const Tokenizer& tokenizer, const Arguments& args) {
  const std::vector<int32_t> ids = read_ids("--ids", *args.ids);
  tokenizer.require_tokens(ids);
  const std::string text = replace_broken_utf8(tokenizer.decode(ids));
  if (args.json)
    context.out.write(nlohmann::ordered_json({{"ids", ids}, {"text", text}}).dump() + "\n");
  else
    context.out.print("{}\n", context.out.is_terminal() ? without_controls(text) : text);
}

void encode(const Context& context, const Tokenizer& tokenizer, const Arguments& args, const std::string& text) {
  const std::vector<int32_t> ids = args.special ? tokenizer.encode_with_specials(text) : tokenizer.encode(text);
  const std::vector<std::string> pieces = pieces_of(tokenizer, ids);
  if (args.json) {
    context.out.write(nlohmann::ordered_json({{"ids", ids}, {"pieces", pieces}}).dump() + "\n");
    return;
  }
  std::string table;
  for (size_t i = 0; i < ids.size(); ++i) table += fmt::format("{:>8}  {}\n", ids[i], without_controls(Json(pieces[i]).dump()));
  context.out.write(table);
  context.out.print("{} tokens: {}\n", ids.size(), joined(ids));
}

// {"text": TEXT, "special": BOOL} to {"ids": [...]}
std::string encode_line(const Tokenizer& tokenizer, const std::string& line, const std::string& where) {
  const Json input = parse_json(line, where);
  const auto expect = [&](bool holds, const char* what) {
    if (!holds) raise(ErrorCode::Corrupt, "{}: expected {}", where, what);
  };
  expect(input.is_object() && input.contains("text"), "an object with \"text\", and \"special\" if it is wanted");
  for (const auto& [key, value] : input.items()) {
    if (key == "text")
      expect(value.is_string(), "\"text\" to be a string");
    else if (key == "special")
      expect(value.is_boolean(), "\"special\" to be true or false");
    else
      raise(ErrorCode::Corrupt, "{}: key \"{}\" is not known; text and special are", where, key);
  }
  const auto& text = input["text"].get_ref<const std::string&>();
  const bool special = input.contains("special") && input["special"].get<bool>();
  Json output;
  output["ids"] = special ? tokenizer.encode_with_specials(text) : tokenizer.encode(text);
  return output.dump();
}

void encode_lines(const Context& context, const Tokenizer& tokenizer) {
  LineReader lines(STDIN_FILENO);
  std::string line;
  for (size_t number = 1; lines.next(line) == LineReader::Result::Line; ++number)
    context.out.write(encode_line(tokenizer, line, fmt::format("standard input, line {}", number)) + "\n");
}

std::shared_ptr<const Tokenizer> load_tokenizer(const Context& context, const Arguments& args) {
  if (args.model && !std::filesystem::is_directory(*args.model) && !is_gguf(*args.model))
    raise(ErrorCode::NotFound,
          "{}: is neither a folder nor a GGUF file; expected MODEL, one of them (text goes after it, or by -p TEXT)",
          printable(*args.model));
  const auto files = ModelFiles::open(model_path(context, args.model));
  auto tokenizer = files->tokenizer();
  if (!tokenizer) files->raise_no_tokenizer();
  const auto config = [&]() -> std::optional<ModelConfig> {
    try {
      if (files->has_config()) return files->config();
    } catch (const Error& error) {
      context.err.print("kilin: {}; it is not used here\n", displayable(error.what()));
    }
    return std::nullopt;
  }();
  if (config) require_fit(*tokenizer, *config);
  return tokenizer;
}

void tokenize(const Context& context, const Arguments& args) {
  args.validate();
  const auto loaded = load_tokenizer(context, args);
  const Tokenizer& tokenizer = *loaded;
  if (args.decode) return decode(context, tokenizer, args);
  if (args.jsonl) return encode_lines(context, tokenizer);
  std::vector<std::string> texts = args.texts;
  if (args.text) texts.insert(texts.begin(), *args.text);
  if (texts.empty()) texts.emplace_back("-");
  for (std::string& text : texts) {
    const bool is_typed = text != "-";
    if (!is_typed) text = read_all(STDIN_FILENO);
    require_utf8(text, is_typed ? "the text" : "standard input");
    encode(context, tokenizer, args, text);
  }
}

}  // namespace

void add_tokenize(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into token ids, and back");
  command->footer(kFooter);
  const auto args = std::make_shared<Arguments>();
  add_model(*command, args->model);
  command->add_option("TEXT", args->text, "The text; -: standard input")->type_name("");
  add_texts(*command, "-p,--prompt", args->texts, "A text, where MODEL is left out; may be given several times");
  command->add_flag("--special", args->special, "Names of special tokens in the text become these tokens");
  command->add_flag("--jsonl", args->jsonl, R"(Read lines {"text": TEXT, "special": BOOL}, write lines {"ids": [...]})");
  command->add_flag("--decode", args->decode, "Turn --ids into text");
  add_ids(*command, args->ids, "Token ids for --decode: 5,17,9");
  command->add_flag("--json", args->json, "Print one JSON object a text");
  constexpr const char* kGroup = "Taken as by generate and logits; without effect here";
  args->engine.add_to(*command, kGroup);
  add_unsigned(*command, "--seed", args->seed, "Seed of chance")->group(kGroup);
  command->callback([&context, args] { context.run = [&context, args] { tokenize(context, *args); }; });
}

}  // namespace kilin::cli

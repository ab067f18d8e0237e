#include "cli/options/options.h"

#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/App.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cli/context.h"
#include "cli/terminal/input.h"
#include "core/cpu_info.h"
#include "core/error.h"
#include "engine/engine.h"

namespace kilin::cli {

namespace {

// The whole of `text` as a number; what is wrong with it otherwise.
template <typename T>
T parse_whole(std::string_view option, std::string_view text, std::string_view expected) {
  T value{};
  if (text.empty()) raise(ErrorCode::InvalidArgument, "{} is empty; expected {}", option, expected);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    raise(ErrorCode::InvalidArgument, "{} is {}, which is too large or too small; expected {}", option, printable(text),
          expected);
  if (error != std::errc() || end != text.data() + text.size())
    raise(ErrorCode::InvalidArgument, "{} is '{}'; expected {}", option, printable(text), expected);
  return value;
}

// "--max-tokens" of "-n,--max-tokens"
std::string long_name(const std::string& name) { return name.substr(name.rfind(',') + 1); }

// "f32, bf16 or q8"
std::string either_of(const std::vector<std::string>& words) {
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

// What a file or a pipe holds: "5,17,9", "5 17 9", lines, or "[5, 17, 9]".
std::vector<int32_t> parse_many_ids(std::string_view text, const std::string& source) {
  static constexpr std::string_view kSpace = " \t\r\n";
  const auto skip_space = [&text] { text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size())); };
  const auto skip = [&](char c) {
    skip_space();
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    skip_space();
    return true;
  };
  std::vector<int32_t> ids;
  const bool in_brackets = skip('[');
  for (bool more = true; more;) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    const auto read = static_cast<size_t>(end - text.data());
    const bool ends = read == text.size() || (std::string(kSpace) + ",]").find(text[read]) != std::string::npos;
    if (error != std::errc() || !ends)
      raise(ErrorCode::InvalidArgument, "{}: id {} is {}; expected token ids with commas or white space between", source,
            ids.size() + 1,
            text.empty() ? "missing" : fmt::format("'{}'", printable(text.substr(0, text.find_first_of(" \t\r\n,]", 1)))));
    ids.push_back(id);
    text.remove_prefix(read);
    const bool comma = skip(',');
    more = comma || (!text.empty() && !text.starts_with(']'));
  }
  if (in_brackets && !skip(']')) raise(ErrorCode::InvalidArgument, "{}: expected ']' after {} ids", source, ids.size());
  if (!text.empty())
    raise(ErrorCode::InvalidArgument, "{}: '{}' stands after {} ids; expected the end", source, printable(text), ids.size());
  return ids;
}

template <typename Assign>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, const char* type, const std::string& description,
                        Assign assign) {
  std::function<void(const std::string&)> take = [option = long_name(name), assign](const std::string& text) {
    assign(option, text);
  };
  return app.add_option_function(name, take, description)->type_name(type);
}

}  // namespace

uint64_t parse_unsigned(std::string_view option, std::string_view text, Range range) {
  const std::string expected = range.max == UINT64_MAX ? fmt::format("a whole number from {} on", range.min)
                                                       : fmt::format("a whole number from {} to {}", range.min, range.max);
  const auto value = parse_whole<uint64_t>(option, text, expected);
  if (value < range.min || value > range.max)
    raise(ErrorCode::InvalidArgument, "{} is {}; expected {}", option, value, expected);
  return value;
}

std::vector<size_t> parse_unsigned_list(std::string_view option, std::string_view text, Range range) {
  if (text == "none") return {};
  const std::string expected =
      fmt::format("whole numbers from {} to {} with commas between, as in 512,2048, or none", range.min, range.max);
  if (text.empty()) raise(ErrorCode::InvalidArgument, "{} is empty; expected {}", option, expected);
  std::vector<size_t> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view piece = text.substr(begin, end - begin);
    size_t number = 0;
    const auto [stop, error] = std::from_chars(piece.data(), piece.data() + piece.size(), number);
    if (error != std::errc() || stop != piece.data() + piece.size() || number < range.min || number > range.max)
      raise(ErrorCode::InvalidArgument, "{} is '{}', whose number {} is {}; expected {}", option, printable(text),
            numbers.size() + 1, piece.empty() ? "empty" : fmt::format("'{}'", printable(piece)), expected);
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

double parse_number(std::string_view option, std::string_view text) {
  const auto value = parse_whole<double>(option, text, "a number");
  if (!std::isfinite(value)) raise(ErrorCode::InvalidArgument, "{} is {}; expected a finite number", option, text);
  return value;
}

size_t thread_count(const std::optional<uint64_t>& threads) { return threads ? *threads : usable_threads(); }

std::vector<int32_t> parse_ids(std::string_view option, std::string_view text) {
  constexpr const char* kExpected = "token ids with commas between, as in 5,17,9";
  if (text.empty()) raise(ErrorCode::InvalidArgument, "{} is empty; expected {}", option, kExpected);
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view piece = text.substr(begin, end - begin);
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(piece.data(), piece.data() + piece.size(), id);
    if (error != std::errc() || stop != piece.data() + piece.size())
      raise(ErrorCode::InvalidArgument, "{} is '{}', whose id {} is {}; expected {}", option, printable(text), ids.size() + 1,
            piece.empty() ? "empty" : fmt::format("'{}'", printable(piece)), kExpected);
    ids.push_back(id);
    begin = end + 1;
  }
  return ids;
}

std::vector<int32_t> read_ids(std::string_view option, const std::string& value) {
  if (value == "-") return parse_many_ids(read_all(STDIN_FILENO), "standard input");
  if (!value.starts_with('@')) return parse_ids(option, value);
  const std::string file = value.substr(1);
  return parse_many_ids(read_whole(file), file);
}

CLI::Option* add_ids(CLI::App& app, std::optional<std::string>& target, const std::string& description) {
  return add_text(app, "--ids", "IDS", "token ids with commas between, as in 5,17,9", target,
                  description + "; @FILE: those of a file; -: of standard input");
}

CLI::Option* add_unsigned(CLI::App& app, const std::string& name, size_t& target, const std::string& description, Range range) {
  return add_parsed(app, name, "N", description, [&target, range](const std::string& option, const std::string& text) {
    target = parse_unsigned(option, text, range);
  });
}

CLI::Option* add_unsigned(CLI::App& app, const std::string& name, std::optional<uint64_t>& target,
                          const std::string& description, Range range) {
  return add_parsed(app, name, "N", description, [&target, range](const std::string& option, const std::string& text) {
    target = parse_unsigned(option, text, range);
  });
}

CLI::Option* add_unsigned_list(CLI::App& app, const std::string& name, std::vector<size_t>& target,
                               const std::string& description, Range range) {
  return add_parsed(app, name, "N,...", description, [&target, range](const std::string& option, const std::string& text) {
    target = parse_unsigned_list(option, text, range);
  });
}

CLI::Option* add_number(CLI::App& app, const std::string& name, std::optional<double>& target, const std::string& description) {
  return add_parsed(app, name, "X", description,
                    [&target](const std::string& option, const std::string& text) { target = parse_number(option, text); });
}

CLI::Option* add_text(CLI::App& app, const std::string& name, const char* type, const std::string& expected,
                      std::optional<std::string>& target, const std::string& description) {
  return add_parsed(app, name, type, description, [&target, expected](const std::string& option, const std::string& text) {
    if (text.empty()) raise(ErrorCode::InvalidArgument, "{} is empty; expected {}", option, expected);
    target = text;
  });
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, const std::vector<std::string>& words,
                        std::optional<std::string>& target, const std::string& description) {
  return add_parsed(app, name, "TYPE", description, [&target, words](const std::string& option, const std::string& text) {
    if (std::ranges::find(words, text) == words.end())
      raise(ErrorCode::InvalidArgument, "{} is '{}'; expected {}", option, printable(text), either_of(words));
    target = text;
  });
}

CLI::Option* add_threads(CLI::App& app, std::optional<uint64_t>& target, const std::string& description) {
  return add_unsigned(app, "--threads", target, description + " (default: as many as this process may use)",
                      {1, EngineOptions::kMostThreads});
}

CLI::Option* add_texts(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                       const std::string& description) {
  // With extra arguments allowed, CLI11 would take apart a text like "[a,b]", and take MODEL for a text.
  return app.add_option(name, target, description)->allow_extra_args(false)->type_name("TEXT");
}

CLI::Option* add_model(CLI::App& app, std::optional<std::string>& target) {
  return add_text(app, "MODEL", "", "the folder of a model or a GGUF file", target,
                  "Folder of the model, or GGUF file; left out: the tiny one that comes with Kilin");
}

std::filesystem::path model_path(const Context& context, const std::optional<std::string>& model) {
  if (model) return *model;
  if (!std::filesystem::is_directory(context.tiny_model))
    raise(ErrorCode::NotFound, "{}: the model that comes with Kilin is not there; name the folder of another one",
          context.tiny_model.lexically_normal().string());
  return context.tiny_model;
}

}  // namespace kilin::cli

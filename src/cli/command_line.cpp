#include "cli/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <set>
#include <utility>

#include "core/error.h"

namespace kilin::cli {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App& require_command(const CLI::App& app, const std::string& word) {
  std::string known;
  const auto commands = commands_of(app);
  for (const CLI::App* command : commands) {
    if (command->get_name() == word) return *command;
    known += (known.empty() ? "" : command == commands.back() ? " and " : ", ") + command->get_name();
  }
  raise(ErrorCode::InvalidArgument, "'{}' is not a command; {} are", printable(word), known);
}

// The option of this name that takes a value; null for flags and for what is no option.
const CLI::Option* option_with_value(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0 ? option : nullptr;
}

// "-n" and what follows it in the same argument.
void refuse_equals_sign(const CLI::Option& option, const std::string& argument) {
  const std::string name = argument.substr(0, 2), value = argument.substr(3);
  const auto& names = option.get_lnames();
  const std::string long_form = names.empty() ? "" : fmt::format(" or --{}={}", names.front(), printable(value));
  raise(ErrorCode::InvalidArgument, "'{}' has an equals sign; expected {} {}{}", printable(argument), name, printable(value),
        long_form);
}

}  // namespace

std::vector<std::string> prepared_arguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> prepared;
  const CLI::App* command = &app;
  const CLI::Option* waiting = nullptr;  // the option before, whose value comes next
  std::set<const CLI::Option*> given;
  bool options_ended = false;
  const auto meet = [&](const CLI::Option& option) {
    const bool is_new = given.insert(&option).second;
    if (!is_new && option.get_items_expected_max() == 1)
      raise(ErrorCode::InvalidArgument, "{} is given twice; expected it once", option.get_name());
  };
  for (const std::string& argument : arguments) {
    prepared.push_back(argument);
    if (options_ended || std::exchange(waiting, nullptr) != nullptr) continue;
    if (argument == "--") {
      options_ended = true;
    } else if (argument.starts_with("--")) {
      const size_t equals = argument.find('=');
      const std::string name = argument.substr(0, equals);
      const CLI::Option* option = option_with_value(*command, name);
      if (option == nullptr) continue;
      meet(*option);
      if (equals == std::string::npos) waiting = option;
      if (equals + 1 == argument.size()) {
        prepared.back() = name;
        prepared.emplace_back();
      }
    } else if (argument.size() > 1 && argument[0] == '-') {
      const CLI::Option* option = option_with_value(*command, argument.substr(0, 2));
      if (option == nullptr) continue;
      meet(*option);
      if (argument.size() == 2) waiting = option;
      if (argument.size() > 2 && argument[2] == '=') refuse_equals_sign(*option, argument);
    } else if (command == &app) {
      command = &require_command(app, argument);
    }
  }
  if (waiting != nullptr) raise(ErrorCode::InvalidArgument, "{} stands last; expected its value after it", waiting->get_name());
  return prepared;
}

std::string unexpected_arguments(const CLI::App& app) {
  std::string text;
  for (const std::string& argument : app.remaining(true))
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", printable(argument));
  return text;
}

std::string command_name(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app.get_name() : app.get_name() + " " + parsed.front()->get_name();
}

std::string help_of(const CLI::App& app) {
  std::string text;
  for (char c : app.help())
    if (c != '\n' || !text.ends_with("\n\n")) text += c;
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace kilin::cli

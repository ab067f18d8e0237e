#include "cli/chat/chat_input.h"

#include <array>

#include "core/error.h"

namespace kilin::cli {

const char* const kChatCommands =
    "  /save FILE    keep the conversation\n"
    "  /load FILE    go on with one that was kept\n"
    "  /reset        begin a new one\n"
    "  /system TEXT  begin a new one with this system message; without TEXT: with none\n"
    "  /help         show this\n"
    "  /exit         end, as Ctrl-D does\n"
    "A backslash at the end of a line goes on to the next one. Ctrl-C stops an answer.";

namespace {

enum class Argument { None, Optional, Required };

struct Command {
  std::string_view name;
  ChatEntry::Kind kind;
  Argument argument;
};

constexpr std::array kCommands = {
    Command{"/save", ChatEntry::Kind::Save, Argument::Required},
    Command{"/load", ChatEntry::Kind::Load, Argument::Required},
    Command{"/reset", ChatEntry::Kind::Reset, Argument::None},
    Command{"/system", ChatEntry::Kind::System, Argument::Optional},
    Command{"/help", ChatEntry::Kind::Help, Argument::None},
    Command{"/exit", ChatEntry::Kind::Exit, Argument::None},
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

ChatEntry parse_chat_entry(std::string_view line) {
  if (!line.starts_with('/')) return {ChatEntry::Kind::Message, std::string(line)};
  const std::string_view name = line.substr(0, line.find_first_of(" \t\r\n"));
  const std::string_view argument = trimmed(line.substr(name.size()));
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    if (command.argument == Argument::Required && argument.empty())
      raise(ErrorCode::InvalidArgument, "{} needs the name of a file", name);
    if (command.argument == Argument::None && !argument.empty())
      raise(ErrorCode::InvalidArgument, "{} stands alone; '{}' follows it", name, argument);
    return {command.kind, std::string(argument)};
  }
  raise(ErrorCode::InvalidArgument, "{} is not known; /help lists the commands (a space before the / makes it a message)",
        name);
}

}  // namespace kilin::cli

// What a user types into a chat: messages and commands.
#pragma once

#include <string>
#include <string_view>

#include "cli/terminal/input.h"

namespace kilin::cli {

/// One thing that was typed.
struct ChatEntry {
  enum class Kind { Message, Save, Load, Reset, System, Help, Exit };
  Kind kind;
  std::string text;  ///< the message, or what follows the command
};

/// A line that begins with '/' is a command, everything else a message; a space before the '/' makes it one.
/// @throws InvalidArgument for a command that is not known, lacks its argument or takes none
ChatEntry parse_chat_entry(std::string_view line);

/// The commands, for /help and --help.
extern const char* const kChatCommands;

/// Reads a line and, as long as lines end in a backslash, those after it: the backslash becomes the newline that it hides.
/// @param on_continuation called before each line but the first
template <typename OnContinuation>
LineReader::Result read_entry(LineReader& reader, std::string& entry, OnContinuation on_continuation) {
  LineReader::Result result = reader.next(entry);
  while (result == LineReader::Result::Line && entry.ends_with('\\')) {
    on_continuation();
    std::string more;
    entry.back() = '\n';
    result = reader.next(more);
    if (result == LineReader::Result::End) return LineReader::Result::Line;
    entry += more;
  }
  return result;
}

}  // namespace kilin::cli

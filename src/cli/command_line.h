// The command line as the user typed it: what CLI11 would take in another way than it looks is put right or refused here.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kilin::cli {

/// The arguments, without the program's name, as `app` shall get them. "--temp=" hands over an empty value, which CLI11 would
/// take from the next argument.
/// @throws InvalidArgument for a word that is no command of `app`; for "-n=5", which CLI11 would read as the value "=5"; for an
/// option without its value, and one that is given twice
std::vector<std::string> prepared_arguments(const CLI::App& app, const std::vector<std::string>& arguments);

/// After a failed parse: what `app` did not expect, in the order in which it was typed; empty if there was nothing such.
std::string unexpected_arguments(const CLI::App& app);

/// "kilin generate", of the command that was being parsed; "kilin" before any.
std::string command_name(const CLI::App& app);

/// Help for people: `app`'s, without runs of empty lines.
std::string help_of(const CLI::App& app);

}  // namespace kilin::cli

// Options that mean the same in every command, and strict reading of their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kilin::cli {

struct Context;

/// What a whole number may be, both ends included.
struct Range {
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;
};

// Numbers are decimal and take the whole text; anything else, an overflow among it, is InvalidArgument naming `option`.
uint64_t parse_unsigned(std::string_view option, std::string_view text, Range range = {});
double parse_number(std::string_view option, std::string_view text);  ///< finite

/// "512,2048": whole numbers with commas between, each in the range; "none" is an empty list.
std::vector<size_t> parse_unsigned_list(std::string_view option, std::string_view text, Range range = {});

/// The number of threads that `--threads` asks for; without it as many as this process may use.
size_t thread_count(const std::optional<uint64_t>& threads);

/// "5,17,9": token ids with commas between. @throws InvalidArgument naming the whole, the piece that is none and its place
std::vector<int32_t> parse_ids(std::string_view option, std::string_view text);

/// Token ids as --ids takes them: on the command line as above; "@FILE": those of a file; "-": those of standard input. There
/// commas, white space or both stand between them, and brackets may stand around them.
/// @throws InvalidArgument naming the piece that is none and its place; NotFound, Io
std::vector<int32_t> read_ids(std::string_view option, const std::string& value);

// CLI11's own numbers read octal and pass overflow in silence, so values go through the functions above. The target must
// outlive the parse. `name` is as CLI11 wants it: "-n,--max-tokens".
CLI::Option* add_unsigned(CLI::App& app, const std::string& name, size_t& target, const std::string& description,
                          Range range = {});
CLI::Option* add_unsigned(CLI::App& app, const std::string& name, std::optional<uint64_t>& target,
                          const std::string& description, Range range = {});
CLI::Option* add_unsigned_list(CLI::App& app, const std::string& name, std::vector<size_t>& target,
                               const std::string& description, Range range = {});
CLI::Option* add_number(CLI::App& app, const std::string& name, std::optional<double>& target, const std::string& description);

/// A text that is not empty. @param type what help calls it: "FILE". @param expected for the refusal of an empty one
CLI::Option* add_text(CLI::App& app, const std::string& name, const char* type, const std::string& expected,
                      std::optional<std::string>& target, const std::string& description);

/// --ids IDS, for read_ids.
CLI::Option* add_ids(CLI::App& app, std::optional<std::string>& target, const std::string& description);

/// One of some words, at least two.
CLI::Option* add_choice(CLI::App& app, const std::string& name, const std::vector<std::string>& words,
                        std::optional<std::string>& target, const std::string& description);

/// --threads N
CLI::Option* add_threads(CLI::App& app, std::optional<uint64_t>& target, const std::string& description);

/// An option that may be given again and again, with one text each.
CLI::Option* add_texts(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                       const std::string& description);

/// The positional MODEL: a folder or a GGUF file; left out, `target` stays empty.
CLI::Option* add_model(CLI::App& app, std::optional<std::string>& target);

/// What MODEL names, whatever it is, or the folder of the embedded model. @throws NotFound if that one is not there, saying
/// where it was looked for
std::filesystem::path model_path(const Context& context, const std::optional<std::string>& model);

}  // namespace kilin::cli

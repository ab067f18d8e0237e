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

// Numbers are decimal and take the whole text; anything else, an overflow among it, is InvalidArgument naming `option`.
uint64_t parse_unsigned(std::string_view option, std::string_view text);
double parse_number(std::string_view option, std::string_view text);  ///< finite

/// The number of threads that `--threads` asks for; without it as many as this process may use. @throws InvalidArgument beyond
/// 1 to 4096
size_t thread_count(const std::optional<uint64_t>& threads);

/// "5,17,9": token ids with commas between. @throws InvalidArgument naming the piece that is none
std::vector<int32_t> parse_ids(std::string_view option, std::string_view text);

// CLI11's own numbers read octal and pass overflow in silence, so values go through the functions above. The target must
// outlive the parse. `name` is as CLI11 wants it: "-n,--max-tokens".
CLI::Option* add_unsigned(CLI::App& app, const std::string& name, size_t& target, const std::string& description);
CLI::Option* add_unsigned(CLI::App& app, const std::string& name, std::optional<uint64_t>& target,
                          const std::string& description);
CLI::Option* add_number(CLI::App& app, const std::string& name, std::optional<double>& target, const std::string& description);

/// An option that may be given again and again, with one text each.
CLI::Option* add_texts(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                       const std::string& description);

/// The positional MODEL: a folder; left out, `target` stays empty.
CLI::Option* add_model(CLI::App& app, std::optional<std::string>& target);

/// The folder that MODEL names, or that of the embedded model. @throws NotFound, saying what was looked for where
std::filesystem::path model_folder(const Context& context, const std::optional<std::string>& model);

}  // namespace kilin::cli

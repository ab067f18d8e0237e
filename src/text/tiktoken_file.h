// Reads tiktoken.model: one token per line, its bytes in base64, a space and its rank.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kilin {

/// The bytes of every token, by rank. The ranks are 0 .. n-1, each once, with lines in any order; empty lines are ignored.
/// @param source names the file in errors. @throws Corrupt, naming the line
std::vector<std::string> parse_tiktoken(std::string_view text, std::string_view source);

/// @throws NotFound, Io, Corrupt; Unsupported beyond 256 MiB (a real one has 3)
std::vector<std::string> read_tiktoken(const std::filesystem::path& file);

}  // namespace kilin

// Strict JSON: what a file says twice, nests too deep or breaks off is an error that names the file.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace kilin {

using Json = nlohmann::json;

/// Parses one JSON document. @param source names it in errors. @throws Corrupt for anything that is not JSON (RFC 8259), for a
/// key that stands twice in one object, and for more than 64 levels of nesting.
Json parse_json(std::string_view text, std::string_view source);

/// Reads and parses a file; its name is the source. @throws NotFound, Io, Corrupt
Json read_json(const std::filesystem::path& file);

}  // namespace kilin

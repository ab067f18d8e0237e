// JSON as commands print it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kilin::cli {

/// One object on a line of its own. A path is bytes, JSON is text: what is no UTF-8 becomes U+FFFD.
std::string json_line(const nlohmann::ordered_json& json);

}  // namespace kilin::cli

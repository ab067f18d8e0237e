#include "cli/report/json_line.h"

#include <nlohmann/json.hpp>

namespace kilin::cli {

std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace kilin::cli

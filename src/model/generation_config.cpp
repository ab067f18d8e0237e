#include "model/generation_config.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace kilin {

namespace {

int32_t token_id(const Json& value, const std::string& source) {
  if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<int32_t>::max())
    raise(ErrorCode::Corrupt, "{}: eos_token_id holds {}; expected a token id", source, value.dump());
  return value.get<int32_t>();
}

std::optional<double> number(const Json& json, const char* key, const std::string& source) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  if (!found->is_number()) raise(ErrorCode::Corrupt, "{}: {} is {}; expected a number", source, key, found->dump());
  return found->get<double>();
}

}  // namespace

GenerationConfig GenerationConfig::parse(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  if (!json.is_object()) raise(ErrorCode::Corrupt, "{}: expected an object", source);
  GenerationConfig c;
  if (const auto eos = json.find("eos_token_id"); eos != json.end() && !eos->is_null()) {
    if (eos->is_array())
      for (const Json& id : *eos) c.eos_token_ids.push_back(token_id(id, source));
    else
      c.eos_token_ids.push_back(token_id(*eos, source));
  }
  c.temperature = number(json, "temperature", source);
  c.top_p = number(json, "top_p", source);
  c.min_p = number(json, "min_p", source);
  c.repetition_penalty = number(json, "repetition_penalty", source);
  if (const auto top_k = number(json, "top_k", source)) {
    if (!(*top_k >= 0 && *top_k <= 1e9)) raise(ErrorCode::Corrupt, "{}: top_k is {}; expected 0 or more", source, *top_k);
    c.top_k = static_cast<size_t>(*top_k);
  }
  return c;
}

GenerationConfig GenerationConfig::read(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "generation_config.json";
  if (!std::filesystem::exists(file)) return {};
  return parse(read_file(file), file.string());
}

}  // namespace kilin

#include "config/generation_config.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/config_reader.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace kilin {

namespace {

int32_t token_id(const Json& value, const std::string& source, size_t vocab_size) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= vocab_size)
    raise(ErrorCode::Corrupt, "{}: eos_token_id holds {}; expected a token id in 0..{}", source, shown(value), vocab_size - 1);
  return value.get<int32_t>();
}

std::optional<double> number(const Json& json, const char* key, const std::string& source) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  if (!found->is_number()) raise(ErrorCode::Corrupt, "{}: {} is {}; expected a number", source, key, shown(*found));
  return found->get<double>();
}

std::optional<bool> boolean(const Json& json, const char* key, const std::string& source) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  if (!found->is_boolean()) raise(ErrorCode::Corrupt, "{}: {} is {}; expected true or false", source, key, shown(*found));
  return found->get<bool>();
}

}  // namespace

GenerationConfig GenerationConfig::parse(std::string_view text, const std::string& source, size_t vocab_size) {
  const Json json = parse_json(text, source);
  if (!json.is_object()) raise(ErrorCode::Corrupt, "{}: expected an object", source);
  GenerationConfig c;
  if (const auto eos = json.find("eos_token_id"); eos != json.end() && !eos->is_null()) {
    if (eos->is_array())
      for (const Json& id : *eos) c.eos_token_ids.push_back(token_id(id, source, vocab_size));
    else
      c.eos_token_ids.push_back(token_id(*eos, source, vocab_size));
  }
  c.do_sample = boolean(json, "do_sample", source);
  c.temperature = number(json, "temperature", source);
  c.top_p = number(json, "top_p", source);
  c.min_p = number(json, "min_p", source);
  c.repetition_penalty = number(json, "repetition_penalty", source);
  if (const auto top_k = number(json, "top_k", source)) {
    if (!(*top_k >= 0 && *top_k <= 1e9) || *top_k != std::floor(*top_k))
      raise(ErrorCode::Corrupt, "{}: top_k is {}; expected a whole number from 0 on", source, *top_k);
    c.top_k = static_cast<size_t>(*top_k);
  }
  return c;
}

GenerationConfig GenerationConfig::read(const std::filesystem::path& folder, size_t vocab_size) {
  const std::filesystem::path file = folder / "generation_config.json";
  if (!std::filesystem::exists(file)) return {};
  return parse(read_file(file), file.string(), vocab_size);
}

}  // namespace kilin

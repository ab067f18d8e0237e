#include "config/config_reader.h"

#include <nlohmann/json.hpp>

namespace kilin {

namespace {

std::string whole_number(uint64_t min, uint64_t max) { return fmt::format("a whole number in {}..{}", min, max); }
std::string number(double min, double max) { return fmt::format("a number in {}..{}", min, max); }

}  // namespace

std::string shown(const Json& value) { return printable(value.dump(-1, ' ', true)); }

ConfigReader::ConfigReader(const Json& root, const std::string& source) : root_(root), source_(source) {
  if (!root.is_object()) corrupt("the document is {}; expected an object", shown(root));
}

void ConfigReader::fail(ErrorCode code, const std::string& message) const { raise(code, "{}: {}", source_, message); }

void ConfigReader::wrong(std::string_view key, const Json& value, const std::string& expected) const {
  corrupt("key '{}' is {}; expected {}", key, shown(value), expected);
}

void ConfigReader::missing(Spellings key, const std::string& expected) const {
  std::string others;
  for (const std::string_view* spelling = key.begin() + 1; spelling < key.end(); ++spelling)
    others += fmt::format("{}'{}'", others.empty() ? " (or " : ", ", *spelling);
  corrupt("key '{}'{} is missing; expected {}", *key.begin(), others.empty() ? "" : others + ")", expected);
}

const Json* ConfigReader::find(std::string_view key) const {
  const Json* object = &root_;
  for (size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    const auto at = object->find(key.substr(0, dot));
    if (at == object->end() || at->is_null()) return nullptr;
    if (!at->is_object()) wrong(key.substr(0, dot), *at, "an object");
    object = &*at;
    key.remove_prefix(dot + 1);
  }
  const auto at = object->find(key);
  return at == object->end() ? nullptr : &*at;
}

std::vector<std::pair<std::string_view, const Json*>> ConfigReader::present(Spellings key) const {
  std::vector<std::pair<std::string_view, const Json*>> found;
  for (const std::string_view spelling : key)
    if (const Json* value = find(spelling)) found.emplace_back(spelling, value);
  return found;
}

// Converts the value under each spelling; all must give the same result.
template <typename Convert>
auto ConfigReader::agreed(Spellings key, Convert convert) const
    -> std::optional<decltype(convert(std::string_view(), std::declval<const Json&>()))> {
  const auto found = present(key);
  if (found.empty()) return std::nullopt;
  const auto first = convert(found[0].first, *found[0].second);
  for (size_t i = 1; i < found.size(); ++i)
    if (convert(found[i].first, *found[i].second) != first)
      corrupt("keys '{}' ({}) and '{}' ({}) contradict each other; expected the same value", found[0].first,
              shown(*found[0].second), found[i].first, shown(*found[i].second));
  return first;
}

std::optional<size_t> ConfigReader::optional_size(Spellings key, uint64_t min, uint64_t max) const {
  const auto value = agreed(key, [&](std::string_view spelling, const Json& json) -> std::optional<size_t> {
    if (json.is_null()) return std::nullopt;
    if (!json.is_number_unsigned() || json.get<uint64_t>() < min || json.get<uint64_t>() > max)
      wrong(spelling, json, whole_number(min, max));
    return json.get<uint64_t>();
  });
  return value.value_or(std::nullopt);
}

size_t ConfigReader::size(Spellings key, uint64_t min, uint64_t max) const {
  for (const auto& [spelling, value] : present(key))
    if (value->is_null()) wrong(spelling, *value, whole_number(min, max));
  const auto value = optional_size(key, min, max);
  if (!value) missing(key, whole_number(min, max));
  return *value;
}

double ConfigReader::real(Spellings key, double min, double max) const {
  const auto value = agreed(key, [&](std::string_view spelling, const Json& json) {
    // Written so that a NaN fails.
    if (!json.is_number() || !(json.get<double>() >= min && json.get<double>() <= max)) wrong(spelling, json, number(min, max));
    return json.get<double>();
  });
  if (!value) missing(key, number(min, max));
  return *value;
}

std::optional<bool> ConfigReader::optional_boolean(Spellings key) const {
  const auto value = agreed(key, [&](std::string_view spelling, const Json& json) -> std::optional<bool> {
    if (json.is_null()) return std::nullopt;
    if (!json.is_boolean()) wrong(spelling, json, "true or false");
    return json.get<bool>();
  });
  return value.value_or(std::nullopt);
}

bool ConfigReader::boolean(Spellings key) const {
  for (const auto& [spelling, value] : present(key))
    if (value->is_null()) wrong(spelling, *value, "true or false");
  const auto value = optional_boolean(key);
  if (!value) missing(key, "true or false");
  return *value;
}

std::optional<std::string> ConfigReader::optional_string(Spellings key) const {
  const auto value = agreed(key, [&](std::string_view spelling, const Json& json) -> std::optional<std::string> {
    if (json.is_null()) return std::nullopt;
    if (!json.is_string()) wrong(spelling, json, "a string");
    return json.get<std::string>();
  });
  return value.value_or(std::nullopt);
}

std::string ConfigReader::string(Spellings key) const {
  const auto value = optional_string(key);
  if (!value) missing(key, "a string");
  return *value;
}

std::optional<std::vector<size_t>> ConfigReader::optional_sizes(std::string_view key, uint64_t min, uint64_t max) const {
  const Json* json = find(key);
  if (json == nullptr || json->is_null()) return std::nullopt;
  if (!json->is_array()) wrong(key, *json, "a list of whole numbers");
  std::vector<size_t> values;
  values.reserve(json->size());
  for (const Json& item : *json) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() < min || item.get<uint64_t>() > max)
      corrupt("key '{}' holds {}; expected whole numbers in {}..{}", key, shown(item), min, max);
    values.push_back(item.get<uint64_t>());
  }
  return values;
}

std::optional<std::vector<std::string>> ConfigReader::optional_strings(std::string_view key) const {
  const Json* json = find(key);
  if (json == nullptr || json->is_null()) return std::nullopt;
  if (!json->is_array()) wrong(key, *json, "a list of strings");
  std::vector<std::string> values;
  values.reserve(json->size());
  for (const Json& item : *json) {
    if (!item.is_string()) corrupt("key '{}' holds {}; expected strings", key, shown(item));
    values.push_back(item.get<std::string>());
  }
  return values;
}

}  // namespace kilin

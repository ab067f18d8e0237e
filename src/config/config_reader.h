// Reads typed values out of config.json: one value under any of its spellings, each checked, none defaulted.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"

namespace kilin {

/// The spellings of one key, the published one first. "linear_attn_config.num_heads" stands inside an object.
using Spellings = std::initializer_list<std::string_view>;

/// Every function throws Corrupt and names file, key, value and what was expected, if a value has another type or is out of
/// range, or if two spellings contradict each other; the ones without "optional" also if no spelling is there. Null counts as
/// absent for optional values only.
class ConfigReader {
 public:
  /// @pre both outlive it. @throws Corrupt unless the root is an object
  ConfigReader(const Json& root, const std::string& source);

  size_t size(Spellings key, uint64_t min, uint64_t max) const;
  std::optional<size_t> optional_size(Spellings key, uint64_t min, uint64_t max) const;
  double real(Spellings key, double min, double max) const;
  bool boolean(Spellings key) const;
  std::optional<bool> optional_boolean(Spellings key) const;
  std::string string(Spellings key) const;
  std::optional<std::string> optional_string(Spellings key) const;
  std::optional<std::vector<size_t>> optional_sizes(std::string_view key, uint64_t min, uint64_t max) const;
  std::optional<std::vector<std::string>> optional_strings(std::string_view key) const;

  /// The value as it is, null included; nullptr if the key is absent.
  const Json* find(std::string_view key) const;

  template <typename... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::Corrupt, fmt::vformat(format, fmt::make_format_args(args...)));
  }
  template <typename... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::Unsupported, fmt::vformat(format, fmt::make_format_args(args...)));
  }
  /// "key 'hidden_size' is -1; expected ..."
  [[noreturn]] void wrong(std::string_view key, const Json& value, const std::string& expected) const;
  [[noreturn]] void missing(Spellings key, const std::string& expected) const;

 private:
  [[noreturn]] void fail(ErrorCode code, const std::string& message) const;
  std::vector<std::pair<std::string_view, const Json*>> present(Spellings key) const;
  template <typename Convert>
  auto agreed(Spellings key, Convert convert) const
      -> std::optional<decltype(convert(std::string_view(), std::declval<const Json&>()))>;

  const Json& root_;
  const std::string& source_;
};

/// A value as text for a message: ASCII, one line, cut if it is long.
std::string shown(const Json& value);

}  // namespace kilin

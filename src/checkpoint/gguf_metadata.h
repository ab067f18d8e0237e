// The key/value part of a GGUF file. Values refer to the file's bytes: nothing is copied but numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "checkpoint/gguf_types.h"

namespace kilin {

struct GgufValue;

/// An array as it lies in the file; its reader has checked it whole. It lives as long as the file's bytes.
class GgufArray {
 public:
  GgufArray(GgufType element, size_t size, std::span<const std::byte> bytes) : element_(element), size_(size), bytes_(bytes) {}

  GgufType element() const { return element_; }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return bytes_; }  ///< as in the file, after the count

  /// @pre i < size(), and the elements are no strings
  GgufValue at(size_t i) const;

  /// All elements. @pre element() == GgufType::string
  std::vector<std::string_view> strings() const;

 private:
  GgufType element_;
  size_t size_;
  std::span<const std::byte> bytes_;
};

/// One value with its type in the file; integers and floats of every width are kept in the widest.
struct GgufValue {
  GgufType type;
  std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray> value;

  /// nullptr if the value is of another kind: u*, i*, f*, bool, string, array.
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
};

/// A number or a truth value at `bytes`, little-endian. @pre size_of(type) > 0 bytes are there
GgufValue read_gguf_scalar(GgufType type, const std::byte* bytes);

/// By key, ascending.
class GgufMetadata {
 public:
  using Values = std::map<std::string, GgufValue, std::less<>>;

  /// nullptr if there is no such key.
  const GgufValue* find(std::string_view key) const;
  const Values& values() const { return values_; }

  /// @returns false, and changes nothing, if the key is there
  bool add(std::string_view key, const GgufValue& value) { return values_.emplace(key, value).second; }

 private:
  Values values_;
};

}  // namespace kilin

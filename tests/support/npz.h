// Reads golden .npz files without checking them: NumPy's archives of .npy files, stored without compression. Tests only.
#pragma once

#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

#include "checkpoint/npy.h"

namespace kilin::testing {

/// All arrays by name. @throws std::runtime_error for a compressed one, and as parse_npy
inline std::map<std::string, Tensor> read_npz(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  const auto number = [&](size_t at, size_t size) {
    size_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    return value;
  };
  constexpr size_t kEnd = 22;  // of the archive, without a comment: the directory's place and its entries
  const size_t end = bytes.size() - kEnd, entries = number(end + 10, 2);
  std::map<std::string, Tensor> arrays;
  for (size_t i = 0, at = number(end + 16, 4); i < entries; ++i) {
    const size_t method = number(at + 10, 2), size = number(at + 20, 4), local = number(at + 42, 4);
    const std::string name(reinterpret_cast<const char*>(bytes.data()) + at + 46, number(at + 28, 2));
    if (method != 0) throw std::runtime_error(file.string() + ": " + name + " is compressed");
    const size_t data = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    arrays.emplace(name.substr(0, name.rfind(".npy")), parse_npy(bytes.subspan(data, size), file.string() + ": " + name));
    at += 46 + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
  }
  return arrays;
}

}  // namespace kilin::testing

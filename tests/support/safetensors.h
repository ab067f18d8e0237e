// Reads golden safetensors files without checking them. Tests only: the product's reader is checkpoint/safetensors.h, which
// tests of other folders shall not depend on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kilin::testing {

struct GoldenTensor {
  std::vector<size_t> shape;
  std::vector<float> floats;  // of F32 and BF16
  std::vector<int32_t> ints;  // of I32
};

/// All tensors by name. @throws Error for a file that is not there or has another dtype.
std::map<std::string, GoldenTensor> read_safetensors(const std::filesystem::path& file);

}  // namespace kilin::testing

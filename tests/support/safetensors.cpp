#include "support/safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/dtype.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace kilin::testing {

std::map<std::string, GoldenTensor> read_safetensors(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const char* data = bytes.data() + sizeof header_size + header_size;
  const Json header = parse_json({bytes.data() + sizeof header_size, header_size}, file.string());

  std::map<std::string, GoldenTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    GoldenTensor& tensor = tensors[name];
    tensor.shape = entry.at("shape").get<std::vector<size_t>>();
    const auto [begin, end] = entry.at("data_offsets").get<std::pair<size_t, size_t>>();
    const std::string dtype = entry.at("dtype");
    if (dtype == "F32") {
      tensor.floats.resize((end - begin) / sizeof(float));
      std::memcpy(tensor.floats.data(), data + begin, end - begin);
    } else if (dtype == "I32") {
      tensor.ints.resize((end - begin) / sizeof(int32_t));
      std::memcpy(tensor.ints.data(), data + begin, end - begin);
    } else if (dtype == "BF16") {
      std::vector<bf16> halves((end - begin) / sizeof(bf16));
      std::memcpy(halves.data(), data + begin, end - begin);
      for (bf16 x : halves) tensor.floats.push_back(to_float(x));
    } else {
      raise(ErrorCode::Unsupported, "{}: tensor '{}' has dtype {}; tests read F32, BF16 and I32", file.string(), name, dtype);
    }
  }
  return tensors;
}

}  // namespace kilin::testing

// Any bytes are refused as a header with a kilin::Error, or every tensor that they give lies inside the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "checkpoint/safetensors.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  try {
    size_t covered = 0;
    for (const kilin::StoredTensor& tensor : kilin::parse_safetensors(file, "file").tensors) {
      if (tensor.bytes.size() != tensor.format.bytes_of(tensor.elements())) std::abort();
      if (!tensor.bytes.empty() && (tensor.bytes.data() < file.data() || &tensor.bytes.back() > &file.back())) std::abort();
      covered += tensor.bytes.size();
    }
    if (covered > size) std::abort();
  } catch (const kilin::Error&) {
  }
  return 0;
}

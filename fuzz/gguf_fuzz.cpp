// Any bytes are refused as a GGUF file with a kilin::Error, or every tensor and value that they give lies inside the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "checkpoint/gguf.h"
#include "core/error.h"

namespace {

bool inside(std::span<const std::byte> part, std::span<const std::byte> file) {
  return part.empty() || (part.data() >= file.data() && &part.back() <= &file.back());
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  try {
    const kilin::GgufContents contents = kilin::parse_gguf(file, "file");
    size_t covered = 0;
    for (const kilin::StoredTensor& tensor : contents.tensors) {
      if (tensor.bytes.size() != tensor.format.bytes_of(tensor.elements()) || !inside(tensor.bytes, file)) std::abort();
      covered += tensor.bytes.size();
    }
    if (covered > size) std::abort();
    for (const auto& [key, value] : contents.metadata.values()) {
      if (const auto* text = value.as<std::string_view>(); text != nullptr && !inside(bytes_of(*text), file)) std::abort();
      const auto* array = value.as<kilin::GgufArray>();
      if (array == nullptr) continue;
      if (array->element() == kilin::GgufType::string) {
        for (const std::string_view text : array->strings())
          if (!inside(bytes_of(text), file)) std::abort();
      } else if (array->size() > 0) {
        array->at(array->size() - 1);
      }
    }
  } catch (const kilin::Error&) {
  }
  return 0;
}

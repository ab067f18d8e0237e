#include "checkpoint/gguf_metadata.h"

#include <bit>
#include <cstring>

namespace kilin {

namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they lie in the file");

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

GgufValue read_gguf_scalar(GgufType type, const std::byte* bytes) {
  switch (type) {
    case GgufType::u8:
      return {type, uint64_t{load<uint8_t>(bytes)}};
    case GgufType::u16:
      return {type, uint64_t{load<uint16_t>(bytes)}};
    case GgufType::u32:
      return {type, uint64_t{load<uint32_t>(bytes)}};
    case GgufType::u64:
      return {type, load<uint64_t>(bytes)};
    case GgufType::i8:
      return {type, int64_t{load<int8_t>(bytes)}};
    case GgufType::i16:
      return {type, int64_t{load<int16_t>(bytes)}};
    case GgufType::i32:
      return {type, int64_t{load<int32_t>(bytes)}};
    case GgufType::i64:
      return {type, load<int64_t>(bytes)};
    case GgufType::f32:
      return {type, static_cast<double>(load<float>(bytes))};
    case GgufType::f64:
      return {type, load<double>(bytes)};
    case GgufType::boolean:
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return {type, load<uint8_t>(bytes) != 0};
}

GgufValue GgufArray::at(size_t i) const { return read_gguf_scalar(element_, bytes_.data() + i * size_of(element_)); }

std::vector<std::string_view> GgufArray::strings() const {
  std::vector<std::string_view> all;
  all.reserve(size_);
  const std::byte* at = bytes_.data();
  for (size_t i = 0; i < size_; ++i) {
    const auto length = load<uint64_t>(at);
    all.emplace_back(reinterpret_cast<const char*>(at + sizeof length), length);
    at += sizeof length + length;
  }
  return all;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

}  // namespace kilin

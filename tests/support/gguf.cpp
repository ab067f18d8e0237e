#include "support/gguf.h"

#include <cstring>
#include <fstream>
#include <span>

namespace kilin::testing {

Bytes& Bytes::append(const void* data, size_t size) {
  const auto bytes = std::span(static_cast<const std::byte*>(data), size);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

GgufBuilder& GgufBuilder::key(const std::string& name, const std::vector<int32_t>& values) {
  Bytes bytes;
  bytes.add(uint32_t{5}).add(uint64_t{values.size()});
  for (const int32_t value : values) bytes.add(value);
  return raw_key(name, 9, bytes);
}

GgufBuilder& GgufBuilder::key(const std::string& name, const std::vector<std::string>& values) {
  Bytes bytes;
  bytes.add(uint32_t{8}).add(uint64_t{values.size()});
  for (const std::string& value : values) bytes.string(value);
  return raw_key(name, 9, bytes);
}

GgufBuilder& GgufBuilder::raw_key(const std::string& name, uint32_t type, const Bytes& value) {
  Bytes bytes;
  bytes.add(type);
  bytes.text({reinterpret_cast<const char*>(value.get().data()), value.size()});
  keys_[name] = bytes;
  return *this;
}

GgufBuilder& GgufBuilder::tensor(const std::string& name, const std::vector<uint64_t>& extents, uint32_t type,
                                 const std::vector<std::byte>& data, std::optional<uint64_t> offset) {
  tensors_.push_back({name, extents, type, data, offset});
  return *this;
}

GgufBuilder& GgufBuilder::tensor(const std::string& name, const std::vector<uint64_t>& extents,
                                 const std::vector<float>& values) {
  std::vector<std::byte> data(values.size() * sizeof(float));
  if (!data.empty()) std::memcpy(data.data(), values.data(), data.size());
  return tensor(name, extents, 0, data);
}

GgufBuilder& GgufBuilder::without_tensor(const std::string& name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
  return *this;
}

std::vector<std::byte> GgufBuilder::bytes() const {
  const auto rounded = [this](size_t n) { return (n + alignment - 1) / alignment * alignment; };
  Bytes file, data;
  file.text("GGUF").add(version);
  file.add(tensor_count.value_or(tensors_.size())).add(key_count.value_or(keys_.size()));
  const auto append = [](Bytes& to, const std::vector<std::byte>& bytes) {
    to.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  for (const auto& [name, value] : keys_) {
    file.string(name);
    append(file, value.get());
  }
  for (const Tensor& tensor : tensors_) {
    data.zeros(rounded(data.size()) - data.size());
    file.string(tensor.name).add(static_cast<uint32_t>(tensor.extents.size()));
    for (const uint64_t extent : tensor.extents) file.add(extent);
    file.add(tensor.type).add(tensor.offset.value_or(data.size()));
    append(data, tensor.data);
  }
  file.zeros(rounded(file.size()) - file.size());
  append(file, data.get());
  return file.get();
}

void GgufBuilder::write(const std::filesystem::path& file) const {
  const std::vector<std::byte> all = bytes();
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
}

}  // namespace kilin::testing

// Builds GGUF files byte by byte, broken ones too. Tests only: the product's writer, checkpoint/gguf_writer.h, could not write
// what a reader must refuse.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kilin::testing {

/// Little-endian bytes, one value after another.
class Bytes {
 public:
  template <typename T>
  Bytes& add(T value) {
    return append(&value, sizeof value);
  }
  Bytes& text(std::string_view text) { return append(text.data(), text.size()); }
  /// Its length as u64, then the text.
  Bytes& string(std::string_view text) { return add(uint64_t{text.size()}).text(text); }
  Bytes& zeros(size_t count) { return bytes_.resize(bytes_.size() + count), *this; }
  const std::vector<std::byte>& get() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  Bytes& append(const void* data, size_t size);
  std::vector<std::byte> bytes_;
};

/// A file of version 3 whose data begins at a multiple of 32, unless a test says otherwise.
class GgufBuilder {
 public:
  GgufBuilder& key(const std::string& name, uint32_t value) { return raw_key(name, 4, Bytes().add(value)); }
  GgufBuilder& key(const std::string& name, int32_t value) { return raw_key(name, 5, Bytes().add(value)); }
  GgufBuilder& key(const std::string& name, float value) { return raw_key(name, 6, Bytes().add(value)); }
  GgufBuilder& key(const std::string& name, bool value) { return raw_key(name, 7, Bytes().add(uint8_t{value})); }
  GgufBuilder& key(const std::string& name, const char* value) { return raw_key(name, 8, Bytes().string(value)); }
  GgufBuilder& key(const std::string& name, const std::vector<int32_t>& values);
  GgufBuilder& key(const std::string& name, const std::vector<std::string>& values);

  /// A value as its bytes; replaces an earlier one of that name.
  GgufBuilder& raw_key(const std::string& name, uint32_t type, const Bytes& value);
  GgufBuilder& without_key(const std::string& name) { return keys_.erase(name), *this; }

  /// @param extents in the file's order. @param type 0 for f32, 1 f16, 30 bf16, ... @param offset where the header says that
  /// the data begins; by default after the previous tensor
  GgufBuilder& tensor(const std::string& name, const std::vector<uint64_t>& extents, uint32_t type,
                      const std::vector<std::byte>& data, std::optional<uint64_t> offset = std::nullopt);
  GgufBuilder& tensor(const std::string& name, const std::vector<uint64_t>& extents, const std::vector<float>& values);
  GgufBuilder& without_tensor(const std::string& name);

  std::vector<std::byte> bytes() const;
  void write(const std::filesystem::path& file) const;

  uint32_t version = 3;
  std::optional<uint64_t> tensor_count, key_count;  ///< the header's numbers, if they shall be wrong
  size_t alignment = 32;                            ///< of the tensors; a test that changes it must also write the key

 private:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> extents;
    uint32_t type;
    std::vector<std::byte> data;
    std::optional<uint64_t> offset;
  };
  std::map<std::string, Bytes> keys_;  // type and value
  std::vector<Tensor> tensors_;
};

}  // namespace kilin::testing

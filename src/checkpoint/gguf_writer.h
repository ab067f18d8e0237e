// Writes a GGUF file tensor by tensor: what is in memory is one tensor, or a piece of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf_metadata.h"
#include "core/file.h"
#include "core/shape.h"
#include "core/storage_format.h"

namespace kilin {

/// The keys of a file to be written, in the order of the calls. Each call says the type that the file gets, for readers insist
/// on it. @throws InvalidArgument, every one, for a key that is there already
class GgufKeys {
 public:
  void add_u32(std::string_view key, uint32_t value);
  void add_i32(std::string_view key, int32_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_strings(std::string_view key, std::span<const std::string> values);
  /// A value of another file, of its own type.
  void copy(std::string_view key, const GgufValue& value);

  bool contains(std::string_view key) const { return names_.contains(key); }
  size_t size() const { return names_.size(); }
  std::string_view bytes() const { return bytes_; }  ///< as they stand in a file

 private:
  void begin(std::string_view key, GgufType type);
  void begin_array(std::string_view key, GgufType element, size_t size);
  template <typename T>
  void append(T value);
  void append_string(std::string_view text);

  std::set<std::string, std::less<>> names_;
  std::string bytes_;
};

/// Give keys and plan, then write the tensors in the plan's order, then commit(). The file appears with commit(), whole, or not
/// at all; what a killed process leaves beside it has another name and no magic number, so that nothing takes it for a model.
class GgufWriter {
 public:
  struct Planned {
    std::string name;
    StorageFormat format;
    Shape shape;  ///< row-major; a row holds whole blocks
    uint64_t bytes() const { return format.bytes_of(shape.elements()); }
  };

  /// @throws InvalidArgument for a name that stands twice or is too long, a shape without axes or elements, rows of parts of
  /// blocks, and a dtype that GGUF does not know; Io
  GgufWriter(const std::filesystem::path& file, const GgufKeys& keys, std::vector<Planned> plan);

  const std::vector<Planned>& tensors() const { return plan_; }
  /// Of the whole file.
  uint64_t bytes() const { return total_; }

  /// Appends to the tensor whose turn it is, whole or in pieces. @throws InvalidArgument if it is another's turn, or beyond its
  /// size; Io
  void write(std::string_view name, std::span<const std::byte> bytes);

  /// @throws InvalidArgument if a tensor is not complete; Io
  void commit();

 private:
  void pad_to_alignment();

  std::filesystem::path path_;
  std::vector<Planned> plan_;
  AtomicFile file_;
  uint64_t position_ = 0;  // in the file
  uint64_t total_ = 0;
  size_t tensor_ = 0;     // whose turn it is
  uint64_t written_ = 0;  // bytes of it
};

}  // namespace kilin

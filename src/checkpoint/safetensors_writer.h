// Writes a checkpoint in Hugging Face's layout, tensor by tensor: what is in memory is one tensor, or a piece of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/file.h"
#include "core/shape.h"

namespace kilin {

/// Give the plan, then write its tensors() in their order, then commit(). One shard becomes model.safetensors; several become
/// model-0000i-of-0000n.safetensors with model.safetensors.index.json. Without commit() no file stays.
class SafetensorsWriter {
 public:
  struct Planned {
    std::string name;
    DType dtype;
    Shape shape;
    uint64_t bytes() const { return shape.elements() * size_of(dtype); }
  };

  /// @param plan the tensors, in the order in which they shall fill the shards
  /// @param max_shard_bytes of data a shard; a larger tensor gets a shard of its own
  /// @throws InvalidArgument for a name that stands twice or a folder that already holds a checkpoint; Io
  SafetensorsWriter(const std::filesystem::path& folder, std::vector<Planned> plan, uint64_t max_shard_bytes);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// The plan in the order of writing: inside a shard wider elements come first, for the format knows no padding.
  const std::vector<Planned>& tensors() const { return plan_; }

  /// Appends to the tensor whose turn it is, whole or in pieces. @throws InvalidArgument if it is another's turn, or beyond its
  /// size; Io
  void write(std::string_view name, std::span<const std::byte> bytes);

  /// @throws InvalidArgument if a tensor is not complete; Io
  void commit();

 private:
  struct Shard {
    std::string file;
    size_t begin;  // of its tensors in plan_
    size_t end;
  };
  void plan_shards(uint64_t max_shard_bytes);
  void begin_shard();
  void end_complete();  // closes tensors that are whole, and the shard with its last one
  void write_index() const;

  std::filesystem::path folder_;
  std::vector<Planned> plan_;
  std::vector<Shard> shards_;
  size_t shard_ = 0;      // being written
  size_t tensor_ = 0;     // whose turn it is
  uint64_t written_ = 0;  // bytes of it
  std::unique_ptr<AtomicFile> open_;
  bool committed_ = false;
};

}  // namespace kilin

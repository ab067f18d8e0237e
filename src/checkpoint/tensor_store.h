// What every kind of checkpoint offers: tensors by name, where their bytes are mapped. Knows files, not the model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/shape.h"
#include "core/storage_format.h"

namespace kilin {

/// A tensor as it lies in a file: row-major, little-endian, at any address; blocks run along the last axis. The bytes live as
/// long as the store that gave it.
struct StoredTensor {
  std::string name;
  StorageFormat format = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
  std::string file;  ///< where it stands, for messages

  size_t elements() const { return shape.elements(); }

  /// Rows [begin, end) of the first axis under another name, in place. @pre rank >= 1 (2 with blocks), begin <= end <= shape[0]
  StoredTensor rows(size_t begin, size_t end, std::string new_name) const;

  /// The same bytes with other extents. @pre an equal number of elements
  StoredTensor reshaped(const Shape& new_shape) const;
};

/// Tensors by name. Every function may be called from several threads at once.
class TensorStore {
 public:
  virtual ~TensorStore() = default;

  /// All names, ascending. Opens nothing.
  virtual const std::vector<std::string>& names() const = 0;

  /// The tensor, or nothing if no file promises that name. @throws Error if the file that should hold it can't be read
  virtual std::optional<StoredTensor> find(std::string_view name) const = 0;

  /// Names the store in messages: a folder or a file.
  virtual const std::string& source() const = 0;

  /// The files that the tensors stand in. Empty where there are none.
  virtual std::vector<std::filesystem::path> files() const { return {}; }

  /// Those of them that are open: what a file made from the tensors is as old as. They live as long as the store.
  virtual std::vector<const MappedFile*> mapped_files() const { return {}; }

  /// Nobody will look at these bytes of a tensor soon: takes them out of memory where a file holds them.
  virtual void release(std::span<const std::byte>) const {}

  /// These bytes of a tensor will be read whole and often: asks for huge pages where a file holds them.
  virtual void ask_for_huge_pages(std::span<const std::byte>) const {}

  bool contains(std::string_view name) const;

  /// The name that a tensor has in the file, or would have if it were there: for messages. Another one where a store translates
  /// names.
  virtual std::string stored_name(std::string_view name) const { return std::string(name); }

  /// @throws NotFound, and what find() throws
  StoredTensor require(std::string_view name) const;

 protected:
  TensorStore() = default;
  TensorStore(const TensorStore&) = default;
  TensorStore& operator=(const TensorStore&) = default;
};

}  // namespace kilin

// NumPy's .npy files, versions 1 and 2, little-endian and C order: read whole, and written row by row.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "core/file.h"
#include "core/mat_view.h"
#include "core/tensor.h"

namespace kilin {

/// Parses a whole file's bytes; floats, integers and bools of 1 to 8 bytes keep their type.
/// @param source names the file in errors. @throws Corrupt; Unsupported for Fortran order, big-endian data, other types, more
/// than four axes and other versions
Tensor parse_npy(std::span<const std::byte> file, const std::string& source);

/// @throws NotFound, Io, and as parse_npy
Tensor read_npy(const std::filesystem::path& file);

/// Writes a tensor of up to four axes. The file appears whole, or not at all.
/// @throws InvalidArgument for bf16, which NumPy has not; Io
void write_npy(const std::filesystem::path& file, const Tensor& tensor);

/// A matrix of float32 that stays in its file and is read row by row: larger than memory, if need be.
class NpyMatrix {
 public:
  /// A second array may follow in the file, as NumPy's own save and load allow.
  /// @throws as read_npy; Corrupt for other types and ranks, and for anything else behind the matrix
  explicit NpyMatrix(const std::filesystem::path& file);

  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  const std::filesystem::path& path() const { return mapped_.path(); }
  const Tensor& note() const { return note_; }  ///< the array behind the matrix; empty if there is none

  /// Copies a row. @pre row < rows(), out.size() == cols(). Thread-safe
  void read(size_t row, std::span<float> out) const;

 private:
  MappedFile mapped_;
  std::span<const std::byte> data_;  // of any alignment
  size_t rows_ = 0;
  size_t cols_ = 0;
  Tensor note_;
};

/// Writes a matrix of float32 whose rows come one after another. The file appears with commit(), whole, or not at all.
class NpyWriter {
 public:
  /// @throws Io
  NpyWriter(const std::filesystem::path& file, size_t rows, size_t cols);

  /// @throws InvalidArgument if there are more rows than were promised, or they are of another width; Io
  void append(MatView<const float> rows);

  /// @param note an array that follows the matrix; readers of one array, such as np.load, do not see it
  /// @throws InvalidArgument if rows are missing; Io
  void commit(const Tensor& note = {});

 private:
  std::filesystem::path path_;
  AtomicFile file_;
  size_t rows_;
  size_t cols_;
  size_t written_ = 0;  // rows
};

}  // namespace kilin

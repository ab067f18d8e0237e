// One safetensors file: mapped, its header parsed and checked whole before a tensor is handed out.
//
//   file    = length header data
//   length  = u64, little-endian: bytes of the header
//   header  = JSON object, may end in spaces: name -> {"dtype": NAME, "shape": [n...], "data_offsets": [begin, end]},
//             and "__metadata__" -> object of strings
//   data    = the tensors back to back, row-major, little-endian; offsets count from its first byte. Nothing is aligned: a
//   header
//             may be of any length, and a tensor follow one of an odd number of bytes
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_store.h"
#include "core/file.h"

namespace kilin {

/// What a header says. The tensors refer to the bytes that were parsed.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  ///< by name, ascending
  std::map<std::string, std::string, std::less<>> metadata;
};

/// Parses and checks a whole file's bytes: JSON, dtypes, ranks, sizes (without overflow), and that the tensors cover the data
/// exactly, with neither overlap nor gap.
/// @param source names the file in errors. @throws Corrupt; Unsupported for a dtype or rank that Kilin does not read
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& source);

/// "BF16", ...: the format's name of a dtype.
std::string_view safetensors_dtype(DType dtype);

/// Bytes of a header at most; the reference implementation's own limit.
inline constexpr size_t kMaxSafetensorsHeader = 100'000'000;

class SafetensorsFile final : public TensorStore {
 public:
  /// Maps the file. @throws NotFound, Io, and as parse_safetensors
  static std::shared_ptr<const SafetensorsFile> open(const std::filesystem::path& file);

  const std::vector<std::string>& names() const override { return names_; }
  std::optional<StoredTensor> find(std::string_view name) const override;
  const std::string& source() const override { return source_; }
  std::vector<std::filesystem::path> files() const override { return {mapped_.path()}; }
  std::vector<const MappedFile*> mapped_files() const override { return {&mapped_}; }
  void release(std::span<const std::byte> bytes) const override { mapped_.release(bytes); }
  void ask_for_huge_pages(std::span<const std::byte> bytes) const override { mapped_.ask_for_huge_pages(bytes); }

  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return header_.metadata; }

 private:
  explicit SafetensorsFile(const std::filesystem::path& file);

  MappedFile mapped_;
  std::string source_;
  SafetensorsHeader header_;
  std::vector<std::string> names_;
};

}  // namespace kilin

// A GGUF model as a store of tensors: one file, or all parts of a split one.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf.h"
#include "checkpoint/tensor_store.h"
#include "core/file.h"

namespace kilin {

/// Whether a file begins as GGUF files do. False for what is no file or can't be read. @throws NotFound for a Git LFS pointer
/// in its place
bool is_gguf(const std::filesystem::path& file);

/// For whoever was given a folder and looks for a model in another form: ", but a GGUF file: give FILE itself" with a file of
/// the folder, or nothing where none is named *.gguf.
std::string gguf_hint(const std::filesystem::path& folder);

/// Owns the mapped files; tensors and metadata refer to their bytes. Tensors have the names of the file (`blk.0.attn_q.weight`)
/// and row-major shapes. Immutable, so it may be used by several threads at once.
class GgufFile final : public TensorStore {
 public:
  /// Opens a file. If it is a part of a split model (`NAME-00002-of-00005.gguf`, keys split.*), all the others are opened too:
  /// any of them stands for the whole.
  /// @throws NotFound, naming all parts that are not there; Corrupt if parts contradict each other; Io; and as parse_gguf
  static std::shared_ptr<const GgufFile> open(const std::filesystem::path& file);

  const std::vector<std::string>& names() const override { return names_; }
  std::optional<StoredTensor> find(std::string_view name) const override;
  const std::string& source() const override { return source_; }
  std::vector<std::filesystem::path> files() const override { return files_; }
  std::vector<const MappedFile*> mapped_files() const override;
  void release(std::span<const std::byte> bytes) const override;
  void ask_for_huge_pages(std::span<const std::byte> bytes) const override;

  const std::vector<StoredTensor>& tensors() const { return tensors_; }  ///< by name, ascending
  const GgufMetadata& metadata() const { return metadata_; }             ///< that of the first part

 private:
  explicit GgufFile(const std::filesystem::path& file);
  void add(const std::filesystem::path& file, GgufContents contents, MappedFile mapped);
  void join();

  std::string source_;
  std::vector<std::filesystem::path> files_;
  std::vector<MappedFile> mapped_;
  GgufMetadata metadata_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::string> names_;
};

}  // namespace kilin

// A folder in Hugging Face's layout: model.safetensors alone, or shards with model.safetensors.index.json.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_store.h"

namespace kilin {

/// Owns the mapped files. A shard that is opened must hold exactly the tensors that the index promises of it. Thread-safe.
class Checkpoint final : public TensorStore {
 public:
  /// OnDemand opens a shard when one of its tensors is first asked for, so that a layer can be read where only its shards are
  /// there.
  enum class Shards { All, OnDemand };

  /// @throws NotFound if the folder holds neither file, or a shard is missing; Corrupt if index and shards disagree, or a file
  /// name in the index leaves the folder; and as SafetensorsFile::open
  static std::shared_ptr<const Checkpoint> open(const std::filesystem::path& folder, Shards shards = Shards::All);
  ~Checkpoint() override;

  const std::vector<std::string>& names() const override { return names_; }
  std::optional<StoredTensor> find(std::string_view name) const override;
  const std::string& source() const override { return source_; }
  std::vector<std::filesystem::path> files() const override;
  std::vector<const MappedFile*> mapped_files() const override;
  void release(std::span<const std::byte> bytes) const override;
  void ask_for_huge_pages(std::span<const std::byte> bytes) const override;

  /// File names of the shards, ascending, and which of them holds a tensor. @throws NotFound
  std::vector<std::string> shards() const;
  std::string shard_of(std::string_view name) const;

 private:
  struct Shard;
  Checkpoint(const std::filesystem::path& folder, Shards shards);
  void read_index(const std::filesystem::path& index);
  const SafetensorsFile& file_of(Shard& shard) const;  // REQUIRES mutex_

  std::filesystem::path folder_;
  std::string source_;
  std::vector<std::string> names_;
  std::map<std::string, std::unique_ptr<Shard>> shards_;  // by file name
  std::map<std::string, Shard*, std::less<>> shard_of_;   // by tensor name
  mutable std::mutex mutex_;                              // guards the opening of shards
};

}  // namespace kilin

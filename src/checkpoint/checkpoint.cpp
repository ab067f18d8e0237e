#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/gguf_file.h"
#include "core/error.h"
#include "core/json.h"

namespace kilin {

namespace fs = std::filesystem;

struct Checkpoint::Shard {
  fs::path path;
  std::vector<std::string> promised;  // ascending
  std::shared_ptr<const SafetensorsFile> file;
};

namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// A name in the index may lead to no other folder than the checkpoint's own.
bool is_plain_file_name(std::string_view name) {
  return name.ends_with(".safetensors") && name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

std::string joined(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i ? ", " : "") + printable(names[i]);
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

}  // namespace

std::shared_ptr<const Checkpoint> Checkpoint::open(const fs::path& folder, Shards shards) {
  return std::shared_ptr<const Checkpoint>(new Checkpoint(folder, shards));
}

Checkpoint::~Checkpoint() = default;

Checkpoint::Checkpoint(const fs::path& folder, Shards shards) : folder_(folder), source_(folder.string()) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) raise(ErrorCode::NotFound, "{}: there is no such folder", source_);
  const bool has_single = fs::exists(folder / kSingle, ignored);
  const bool has_index = fs::exists(folder / kIndex, ignored);
  if (has_single && has_index)
    raise(ErrorCode::Corrupt, "{}: holds both {} and {}; expected one of them", source_, kSingle, kIndex);
  if (!has_single && !has_index)
    raise(ErrorCode::NotFound, "{}: holds neither {} nor {}{}; expected a checkpoint in Hugging Face's layout", source_,
          kSingle, kIndex, gguf_hint(folder));

  if (has_index) {
    read_index(folder / kIndex);
  } else {
    auto shard = std::make_unique<Shard>();
    shard->path = folder / kSingle;
    shard->file = SafetensorsFile::open(shard->path);
    shard->promised = shard->file->names();
    for (const std::string& name : shard->promised) shard_of_.emplace(name, shard.get());
    shards_.emplace(kSingle, std::move(shard));
  }
  names_.reserve(shard_of_.size());
  for (const auto& [name, shard] : shard_of_) names_.push_back(name);

  if (shards == Shards::OnDemand) return;
  std::vector<std::string> missing;
  for (const auto& [name, shard] : shards_)
    if (!fs::exists(shard->path, ignored)) missing.push_back(name);
  if (!missing.empty())
    raise(ErrorCode::NotFound, "{}: the index names {} files, of which {} {} missing: {}", source_, shards_.size(),
          missing.size(), missing.size() == 1 ? "is" : "are", joined(missing));
  const std::lock_guard lock(mutex_);
  for (const auto& [name, shard] : shards_) file_of(*shard);
}

void Checkpoint::read_index(const fs::path& index) {
  const std::string source = index.string();
  const Json json = read_json(index);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object() || json["weight_map"].empty())
    raise(ErrorCode::Corrupt, "{}: key 'weight_map' is missing or empty; expected an object of tensor name -> file name",
          source);
  for (const auto& [tensor, file] : json["weight_map"].items()) {  // ascending by tensor
    if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>()))
      raise(ErrorCode::Corrupt,
            "{}: weight_map puts tensor '{}' into {}; expected the name of a .safetensors file of the same folder", source,
            printable(tensor), printable(file.dump(-1, ' ', true)));
    auto& shard = shards_[file.get<std::string>()];
    if (!shard) {
      shard = std::make_unique<Shard>();
      shard->path = folder_ / file.get<std::string>();
    }
    shard->promised.push_back(tensor);
    shard_of_.emplace(tensor, shard.get());
  }
}

// REQUIRES mutex_. Opens the shard and holds it against the index.
const SafetensorsFile& Checkpoint::file_of(Shard& shard) const {
  if (shard.file) return *shard.file;
  auto file = SafetensorsFile::open(shard.path);
  std::vector<std::string> lacking;
  std::set_difference(shard.promised.begin(), shard.promised.end(), file->names().begin(), file->names().end(),
                      std::back_inserter(lacking));
  if (!lacking.empty())
    raise(ErrorCode::Corrupt, "{}: lacks {} of the {} tensors that {} promises of it: {}", shard.path.string(), lacking.size(),
          shard.promised.size(), kIndex, joined(lacking));
  std::vector<std::string> surplus;
  std::set_difference(file->names().begin(), file->names().end(), shard.promised.begin(), shard.promised.end(),
                      std::back_inserter(surplus));
  if (!surplus.empty()) {
    const auto other = shard_of_.find(surplus.front());
    if (other != shard_of_.end())
      raise(ErrorCode::Corrupt, "{}: holds tensor '{}', which {} puts into {}", shard.path.string(), printable(surplus.front()),
            kIndex, other->second->path.filename().string());
    raise(ErrorCode::Corrupt, "{}: holds {} tensors that {} does not name: {}", shard.path.string(), surplus.size(), kIndex,
          joined(surplus));
  }
  shard.file = std::move(file);
  return *shard.file;
}

std::optional<StoredTensor> Checkpoint::find(std::string_view name) const {
  const auto at = shard_of_.find(name);
  if (at == shard_of_.end()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return file_of(*at->second).find(name);
}

std::vector<fs::path> Checkpoint::files() const {
  std::vector<fs::path> files;
  for (const auto& [name, shard] : shards_) files.push_back(shard->path);
  return files;
}

std::vector<const MappedFile*> Checkpoint::mapped_files() const {
  const std::lock_guard lock(mutex_);
  std::vector<const MappedFile*> files;
  for (const auto& [name, shard] : shards_)
    if (shard->file) std::ranges::copy(shard->file->mapped_files(), std::back_inserter(files));
  return files;
}

void Checkpoint::release(std::span<const std::byte> bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, shard] : shards_)  // those that do not hold the bytes leave them alone
    if (shard->file) shard->file->release(bytes);
}

void Checkpoint::ask_for_huge_pages(std::span<const std::byte> bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, shard] : shards_)
    if (shard->file) shard->file->ask_for_huge_pages(bytes);
}

std::vector<std::string> Checkpoint::shards() const {
  std::vector<std::string> names;
  for (const auto& [name, shard] : shards_) names.push_back(name);
  return names;
}

std::string Checkpoint::shard_of(std::string_view name) const {
  const auto at = shard_of_.find(name);
  if (at == shard_of_.end()) raise(ErrorCode::NotFound, "{}: there is no tensor '{}'", source_, printable(name));
  return at->second->path.filename().string();
}

}  // namespace kilin

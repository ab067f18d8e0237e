#include "checkpoint/safetensors_writer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "core/json.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// The header of one shard, padded with spaces so that the data begins at a multiple of 8.
std::string header_of(std::span<const SafetensorsWriter::Planned> tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    header[tensor.name] = {{"dtype", safetensors_dtype(tensor.dtype)},
                           {"shape", std::vector<size_t>(tensor.shape.begin(), tensor.shape.end())},
                           {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
  return length + text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const fs::path& folder, std::vector<Planned> plan, uint64_t max_shard_bytes)
    : folder_(folder), plan_(std::move(plan)) {
  std::set<std::string_view> names;
  for (const Planned& tensor : plan_)
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      raise(ErrorCode::InvalidArgument, "{}: tensor '{}' can't be written: the name is reserved or stands twice",
            folder_.string(), printable(tensor.name));
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) raise(ErrorCode::Io, "{}: {}", folder_.string(), error.message());
  for (const char* file : {kSingle, kIndex})
    if (fs::exists(folder_ / file, error))
      raise(ErrorCode::InvalidArgument, "{}: already holds {}; expected a folder without a checkpoint", folder_.string(), file);
  plan_shards(max_shard_bytes);
  begin_shard();
  end_complete();
}

SafetensorsWriter::~SafetensorsWriter() {
  if (committed_) return;
  std::error_code ignored;
  for (size_t i = 0; i < shard_; ++i) fs::remove(folder_ / shards_[i].file, ignored);
}

void SafetensorsWriter::plan_shards(uint64_t max_shard_bytes) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < plan_.size(); ++i) {
    if (shards_.empty() || bytes + plan_[i].bytes() > max_shard_bytes) {
      shards_.push_back({"", i, i});
      bytes = 0;
    }
    bytes += plan_[i].bytes();
    shards_.back().end = i + 1;
  }
  if (shards_.empty()) shards_.push_back({"", 0, 0});
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].file = shards_.size() == 1 ? kSingle : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards_.size());
    std::stable_sort(plan_.begin() + static_cast<ptrdiff_t>(shards_[i].begin),
                     plan_.begin() + static_cast<ptrdiff_t>(shards_[i].end),
                     [](const Planned& a, const Planned& b) { return size_of(a.dtype) > size_of(b.dtype); });
  }
}

void SafetensorsWriter::begin_shard() {
  const Shard& shard = shards_[shard_];
  open_ = std::make_unique<AtomicFile>(folder_ / shard.file);
  open_->write(header_of(std::span(plan_).subspan(shard.begin, shard.end - shard.begin)));
}

void SafetensorsWriter::end_complete() {
  while (tensor_ < plan_.size() && written_ == plan_[tensor_].bytes()) {
    ++tensor_;
    written_ = 0;
    if (tensor_ < shards_[shard_].end || tensor_ == plan_.size()) continue;
    open_->commit();
    ++shard_;
    begin_shard();
  }
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  // A tensor of no elements has no turn: whoever writes the plan in order comes by with nothing in hand.
  if (bytes.empty()) return;
  if (tensor_ == plan_.size())
    raise(ErrorCode::InvalidArgument, "{}: tensor '{}' was not planned, or is complete", folder_.string(), printable(name));
  const Planned& turn = plan_[tensor_];
  if (name != turn.name || bytes.size() > turn.bytes() - written_)
    raise(ErrorCode::InvalidArgument, "{}: {} bytes of tensor '{}' were given; expected at most {} of '{}'", folder_.string(),
          bytes.size(), printable(name), turn.bytes() - written_, printable(turn.name));
  open_->write(bytes);
  written_ += bytes.size();
  end_complete();
}

void SafetensorsWriter::commit() {
  if (tensor_ != plan_.size())
    raise(ErrorCode::InvalidArgument, "{}: tensor '{}' is not complete: {} of {} bytes", folder_.string(),
          printable(plan_[tensor_].name), written_, plan_[tensor_].bytes());
  open_->commit();
  ++shard_;
  if (shards_.size() > 1) write_index();
  committed_ = true;
}

void SafetensorsWriter::write_index() const {
  Json index;
  uint64_t bytes = 0, parameters = 0;
  for (const Shard& shard : shards_)
    for (size_t i = shard.begin; i < shard.end; ++i) {
      index["weight_map"][plan_[i].name] = shard.file;
      bytes += plan_[i].bytes();
      parameters += plan_[i].shape.elements();
    }
  index["metadata"] = {{"total_parameters", parameters}, {"total_size", bytes}};
  AtomicFile file(folder_ / kIndex);
  file.write(index.dump(2) + "\n");
  file.commit();
}

}  // namespace kilin

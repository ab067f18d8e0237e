#include "model/pack_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "kernels/quant/panels.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

constexpr size_t kPage = 4096;
constexpr std::string_view kMagic = "kilinpak";

// Appends to bytes, little-endian as every machine that Kilin runs on.
class Bytes {
 public:
  template <typename T>
  void number(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
  }
  void text(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    plain(text);
  }
  void plain(std::string_view text) {
    const auto raw = std::as_bytes(std::span(text.data(), text.size()));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void append(const std::vector<std::byte>& other) { bytes_.insert(bytes_.end(), other.begin(), other.end()); }
  void pad(size_t size) { bytes_.resize(size); }
  const std::vector<std::byte>& all() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

void add_source(Bytes& out, const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) raise_errno(file.string());
  out.text(fs::absolute(file).lexically_normal().string());
  out.number(static_cast<uint64_t>(info.st_size));
  out.number(int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec);
}

std::vector<std::byte> table_of(const PackPlan& plan, const PackOrigin& origin) {
  Bytes table;
  table.number(static_cast<uint32_t>(origin.sources.size()));
  for (const fs::path& file : origin.sources) add_source(table, file);
  table.number(static_cast<uint32_t>(plan.packs().size()));
  for (const PlannedPack& pack : plan.packs()) {
    table.text(pack.name);
    table.text(to_string(pack.format));
    for (uint64_t number : {uint64_t{pack.rows}, uint64_t{pack.cols}, pack.offset, pack.bytes}) table.number(number);
  }
  return table.all();
}

// A file that was found whole.
class CachedPacks final : public PackStore {
 public:
  CachedPacks(MappedFile map, size_t data_offset) : map_(std::move(map)), data_offset_(data_offset) {}

  const std::byte* data() const override { return map_.bytes().data() + data_offset_; }
  bool is_complete() const override { return true; }
  void write(uint64_t, std::span<const std::byte>) override { raise(ErrorCode::InvalidArgument, "the packs are complete"); }
  void commit() override {}
  fs::path file() const override { return map_.path(); }

 private:
  MappedFile map_;
  size_t data_offset_;
};

// A file that is being made. Bytes go there by writing, not through a mapping: a full disk is then an error and no signal, and
// what was written is not memory of this process.
class FilePacks final : public PackStore {
 public:
  FilePacks(const fs::path& file, const std::vector<std::byte>& head, uint64_t bytes)
      : path_(file), file_(file), data_offset_(head.size()) {
    file_.resize(head.size() + bytes);
    file_.write_at(0, head);
    map_.emplace(file_.map());
  }

  const std::byte* data() const override { return map_->bytes().data() + data_offset_; }
  bool is_complete() const override { return complete_; }
  void write(uint64_t offset, std::span<const std::byte> bytes) override { file_.write_at(data_offset_ + offset, bytes); }
  void commit() override {
    file_.commit();
    complete_ = true;
  }
  fs::path file() const override { return path_; }

 private:
  fs::path path_;
  AtomicFile file_;
  std::optional<MappedFile> map_;
  size_t data_offset_;
  bool complete_ = false;
};

// The packs of a file that is just what would be written; null if it is not there, or anything else.
std::unique_ptr<PackStore> find_packs(const fs::path& file, const std::vector<std::byte>& head, uint64_t bytes) {
  try {
    MappedFile map(file);
    if (map.bytes().size() != head.size() + bytes) return nullptr;
    if (!std::ranges::equal(map.bytes().first(head.size()), head)) return nullptr;
    return std::make_unique<CachedPacks>(std::move(map), head.size());
  } catch (const Error&) {  // not there, or not to be read: it is made anew
    return nullptr;
  }
}

}  // namespace

std::vector<std::byte> pack_cache_head(const PackPlan& plan, const PackOrigin& origin) {
  const std::vector<std::byte> table = table_of(plan, origin);
  Bytes tail;  // what follows the numbers whose values depend on the length of it all
  tail.text(origin.quantize ? to_string(*origin.quantize) : "");
  tail.append(table);
  const size_t fixed = kMagic.size() + 2 * sizeof(uint32_t) + 3 * sizeof(uint64_t);
  const size_t data_offset = (fixed + tail.all().size() + kPage - 1) / kPage * kPage;

  Bytes head;
  head.plain(kMagic);
  head.number(kPackCacheVersion);
  head.number(kPanelVersion);
  head.number(uint64_t{table.size()});
  head.number(uint64_t{data_offset});
  head.number(uint64_t{data_offset} + plan.bytes());
  head.append(tail.all());
  head.pad(data_offset);
  return head.all();
}

std::unique_ptr<PackStore> packs_in_file(const fs::path& file, const PackPlan& plan, const PackOrigin& origin) {
  const std::vector<std::byte> head = pack_cache_head(plan, origin);
  if (auto found = find_packs(file, head, plan.bytes())) return found;
  return std::make_unique<FilePacks>(file, head, plan.bytes());
}

}  // namespace kilin

#include "weights/pack_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <string_view>

#include "core/error.h"
#include "core/reservation.h"
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

// A pack file that an earlier load has completed.
class CachedPacks final : public PackStore {
 public:
  CachedPacks(MappedFile map, size_t data_offset) : map_(std::move(map)), data_offset_(data_offset) {
    map_.ask_for_huge_pages(map_.bytes());
  }

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
//
// The system keeps what one write brought in a page as large as it, up to a huge one, and what comes in small writes in small
// pages, through which every later load would read it. So each huge page is begun by zeros, and filled bit by bit.
class FilePacks final : public PackStore {
 public:
  FilePacks(const fs::path& file, std::vector<std::byte> head, uint64_t bytes)
      : path_(file),
        file_(file),
        head_(std::move(head)),
        bytes_(head_.size() + bytes),
        begun_((bytes_ + kHugePage - 1) / kHugePage) {
    file_.resize(bytes_);
    map_.emplace(file_.map());
    map_->ask_for_huge_pages(map_->bytes());
  }

  const std::byte* data() const override { return map_->bytes().data() + head_.size(); }
  bool is_complete() const override { return complete_; }
  void write(uint64_t offset, std::span<const std::byte> bytes) override { write_at(head_.size() + offset, bytes); }
  void commit() override {
    write_at(0, head_);
    file_.commit();
    complete_ = true;
  }
  fs::path file() const override { return path_; }

 private:
  void write_at(uint64_t offset, std::span<const std::byte> bytes) {
    begin_pages(offset, offset + bytes.size());
    file_.write_at(offset, bytes);
  }

  // Those of [begin, end) that nobody wrote to yet.
  void begin_pages(uint64_t begin, uint64_t end) {
    const std::lock_guard lock(mutex_);  // held while zeros are written: writes to one file take turns anyway
    for (uint64_t page = begin / kHugePage; page * kHugePage < end; ++page) {
      if (begun_[page]) continue;
      const uint64_t at = page * kHugePage;
      file_.write_at(at, {zeros_.data(), std::min(kHugePage, bytes_ - at)});
      begun_[page] = true;
    }
  }

  fs::path path_;
  AtomicFile file_;
  std::optional<MappedFile> map_;
  std::vector<std::byte> head_;
  uint64_t bytes_;  // of the file
  std::mutex mutex_;
  std::vector<bool> begun_;                    // by huge page of the file; guarded by mutex_
  Reservation zeros_{kHugePage, "pack file"};  // never touched, so it takes no memory
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
  std::vector<std::byte> head = pack_cache_head(plan, origin);
  if (auto found = find_packs(file, head, plan.bytes())) return found;
  return std::make_unique<FilePacks>(file, std::move(head), plan.bytes());
}

}  // namespace kilin

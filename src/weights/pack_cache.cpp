#include "weights/pack_cache.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>

#include "core/digest.h"
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

// Bytes in which models differ: the names and places of tensors, and some values of each.
uint64_t sample_of(std::span<const std::byte> file) {
  constexpr size_t kHead = size_t{64} << 10, kPages = 64;
  const auto head = file.first(std::min(kHead, file.size()));
  std::vector<std::byte> sample(head.begin(), head.end());
  for (size_t i = 1; i <= kPages && file.size() > kPage; ++i) {
    const auto page = file.subspan((file.size() - kPage) / kPages * i, kPage);
    sample.insert(sample.end(), page.begin(), page.end());
  }
  return digest_of(sample);
}

void add_source(Bytes& out, const MappedFile& file) {
  out.text(fs::absolute(file.path()).lexically_normal().string());
  const FileStamp& stamp = file.stamp();
  out.number(stamp.bytes);
  out.number(stamp.inode);
  out.number(stamp.mtime_ns);
  out.number(stamp.ctime_ns);
  out.number(sample_of(file.bytes()));
}

std::vector<std::byte> table_of(const PackPlan& plan, const PackOrigin& origin) {
  Bytes table;
  const std::vector<const MappedFile*> sources = origin.weights->mapped_files();
  table.number(static_cast<uint32_t>(sources.size()));
  for (const MappedFile* file : sources) add_source(table, *file);
  table.number(static_cast<uint32_t>(plan.packs().size()));
  for (const PlannedPack& pack : plan.packs()) {
    table.text(pack.name);
    table.text(to_string(pack.format));
    for (uint64_t number : {uint64_t{pack.rows}, uint64_t{pack.cols}, pack.offset, pack.bytes}) table.number(number);
  }
  return table.all();
}

uint64_t checksum_bytes(const PackPlan& plan) { return plan.packs().size() * sizeof(uint64_t); }

// A file that was found whole.
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
  FilePacks(const fs::path& file, std::vector<std::byte> head, const PackPlan& plan)
      : path_(file),
        file_(file),
        head_(std::move(head)),
        checksums_at_(head_.size() + plan.bytes()),
        checksums_(plan.packs().size()),
        bytes_(checksums_at_ + checksum_bytes(plan)),
        begun_((bytes_ + kHugePage - 1) / kHugePage) {
    file_.resize(bytes_);
    for (const PlannedPack& pack : plan.packs()) offsets_.push_back(pack.offset);
    map_.emplace(file_.map());
    map_->ask_for_huge_pages(map_->bytes());
  }

  const std::byte* data() const override { return map_->bytes().data() + head_.size(); }
  bool is_complete() const override { return complete_; }
  void write(uint64_t offset, std::span<const std::byte> bytes) override { write_at(head_.size() + offset, bytes); }
  void seal(uint64_t offset, uint64_t bytes) override {
    const auto index = std::ranges::lower_bound(offsets_, offset) - offsets_.begin();
    checksums_[static_cast<size_t>(index)] = digest_of({data() + offset, bytes});
  }
  void commit() override {
    write_at(checksums_at_, std::as_bytes(std::span(checksums_)));
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
  uint64_t checksums_at_;
  std::vector<uint64_t> checksums_, offsets_;  // of matrices, in the order of the table
  uint64_t bytes_;                             // of the file
  std::mutex mutex_;
  std::vector<bool> begun_;                    // by huge page of the file; guarded by mutex_
  Reservation zeros_{kHugePage, "pack file"};  // never touched, so it takes no memory
  bool complete_ = false;
};

// A file that begins, and is as long, as what would be written; nothing if it is not there, or anything else.
std::optional<MappedFile> find_file(const fs::path& file, const std::vector<std::byte>& head, const PackPlan& plan) {
  try {
    MappedFile map(file);
    if (map.bytes().size() != head.size() + plan.bytes() + checksum_bytes(plan)) return std::nullopt;
    if (!std::ranges::equal(map.bytes().first(head.size()), head)) return std::nullopt;
    return map;
  } catch (const Error&) {  // not there, or not to be read: it is made anew
    return std::nullopt;
  }
}

// @pre find_file gave it
std::vector<std::string> damaged_in(const MappedFile& map, size_t head_bytes, const PackPlan& plan, ThreadPool* pool) {
  const auto data = map.bytes().subspan(head_bytes);
  const auto is_damaged = [&](size_t index) {
    const PlannedPack& pack = plan.packs()[index];
    uint64_t checksum = 0;
    std::memcpy(&checksum, data.data() + plan.bytes() + index * sizeof checksum, sizeof checksum);
    return digest_of(data.subspan(pack.offset, pack.bytes)) != checksum;
  };
  std::vector<uint8_t> damaged(plan.packs().size());  // not of bool: threads write neighbours
  const auto check = [&](const Slice& slice) {
    for (size_t i = slice.begin; i < slice.end; ++i) damaged[i] = is_damaged(i) ? 1 : 0;
  };
  if (pool != nullptr)
    pool->parallel_for(damaged.size(), 1, check);
  else
    check({0, damaged.size(), 0});
  std::vector<std::string> names;
  for (size_t i = 0; i < damaged.size(); ++i)
    if (damaged[i] != 0) names.push_back(plan.packs()[i].name);
  return names;
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
  head.number(uint64_t{data_offset} + plan.bytes() + checksum_bytes(plan));
  head.append(tail.all());
  head.pad(data_offset);
  return head.all();
}

std::unique_ptr<PackStore> packs_in_file(const fs::path& file, const PackPlan& plan, const PackOrigin& origin, PackCheck check,
                                         ThreadPool* pool) {
  std::vector<std::byte> head = pack_cache_head(plan, origin);
  if (auto found = find_file(file, head, plan))
    if (check == PackCheck::Head || damaged_in(*found, head.size(), plan, pool).empty())
      return std::make_unique<CachedPacks>(*std::move(found), head.size());
  return std::make_unique<FilePacks>(file, std::move(head), plan);
}

std::optional<std::vector<std::string>> damaged_packs(const fs::path& file, const PackPlan& plan, const PackOrigin& origin,
                                                      ThreadPool* pool) {
  const std::vector<std::byte> head = pack_cache_head(plan, origin);
  const auto found = find_file(file, head, plan);
  return found ? std::optional(damaged_in(*found, head.size(), plan, pool)) : std::nullopt;
}

}  // namespace kilin

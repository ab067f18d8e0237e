#include "cache/latent_kv_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/dtype.h"
#include "core/error.h"

namespace kilin {

std::string_view to_string(KvType type) { return type == KvType::f32 ? "f32" : "bf16"; }

KvType parse_kv_type(std::string_view name) {
  for (KvType type : {KvType::f32, KvType::bf16})
    if (name == to_string(type)) return type;
  raise(ErrorCode::InvalidArgument, "kv-type {} is not known; f32 and bf16 are", name);
}

PageTable::PageTable(PageTable&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), pages_(std::exchange(other.pages_, {})) {}

PageTable& PageTable::operator=(PageTable&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(pages_, other.pages_);
  return *this;
}

PageTable::~PageTable() {
  for (PageId page : pages_) pool_->release(page);
}

void PageTable::grow(size_t tokens) {
  const size_t wanted = LatentKvPool::pages_for(tokens);
  if (wanted <= pages_.size()) return;
  if (wanted - pages_.size() > pool_->free_pages())
    raise(ErrorCode::ResourceExhausted, "the latent pool has {} free pages of {} tokens; {} more are needed",
          pool_->free_pages(), LatentKvPool::kPageTokens, wanted - pages_.size());
  while (pages_.size() < wanted) pages_.push_back(pool_->acquire());
}

LatentKvPool::LatentKvPool(const Dimensions& dimensions, size_t pages)
    : dimensions_(dimensions),
      row_bytes_(dimensions.width * (dimensions.type == KvType::f32 ? 4 : 2)),
      memory_(pages * bytes_per_page(), "latents of the past"),
      used_before_(pages) {
  free_.reserve(pages);
  for (size_t page = pages; page-- > 0;) free_.push_back(static_cast<PageId>(page));
}

size_t LatentKvPool::bytes_per_token(const Dimensions& dimensions) {
  return dimensions.layers * dimensions.width * (dimensions.type == KvType::f32 ? 4 : 2);
}

PageId LatentKvPool::acquire() {
  const PageId page = free_.back();
  free_.pop_back();
  // Fresh memory is zero already; touching it here would make the whole plan resident.
  if (used_before_[page]) std::memset(memory_.data() + page * bytes_per_page(), 0, bytes_per_page());
  used_before_[page] = true;
  return page;
}

std::byte* LatentKvPool::row(size_t layer, std::span<const PageId> pages, size_t position) const {
  const size_t page = pages[position / kPageTokens];
  return memory_.data() + ((page * dimensions_.layers + layer) * kPageTokens + position % kPageTokens) * row_bytes_;
}

void LatentKvPool::write(size_t layer, std::span<const PageId> pages, size_t start, MatView<const float> rows) {
  for (size_t r = 0; r < rows.rows(); ++r) {
    std::byte* to = row(layer, pages, start + r);
    const float* from = rows.row(r);
    if (dimensions_.type == KvType::f32) {
      std::memcpy(to, from, row_bytes_);
    } else {
      auto* halves = reinterpret_cast<bf16*>(to);
      std::transform(from, from + dimensions_.width, halves, to_bf16);
    }
  }
}

void LatentKvPool::read(size_t layer, std::span<const PageId> pages, size_t start, MatView<float> out) const {
  for (size_t r = 0; r < out.rows(); ++r) {
    const std::byte* from = row(layer, pages, start + r);
    if (dimensions_.type == KvType::f32) {
      std::memcpy(out.row(r), from, row_bytes_);
    } else {
      const auto* halves = reinterpret_cast<const bf16*>(from);
      std::transform(halves, halves + dimensions_.width, out.row(r), [](bf16 x) { return to_float(x); });
    }
  }
}

}  // namespace kilin

#include "cache/latent_kv_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/saturating.h"

namespace kilin {

PageTable::PageTable(LatentKvPool& pool) : pool_(&pool), ids_(pool.ids_) {}

PageTable::PageTable(PageTable&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      ids_(std::exchange(other.ids_, nullptr)),
      pages_(std::exchange(other.pages_, {})) {}

PageTable& PageTable::operator=(PageTable&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(ids_, other.ids_);
  std::swap(pages_, other.pages_);
  return *this;
}

PageTable::~PageTable() {
  for (PageId page : pages_) ids_->give_back(page);
}

void PageTable::grow(size_t tokens) {
  const size_t wanted = LatentKvPool::pages_for(tokens);
  if (wanted <= pages_.size()) return;
  if (wanted - pages_.size() > pool_->pages()) pool_->raise_full(wanted - pages_.size());
  if (wanted > pages_.capacity()) pages_.reserve(std::max(wanted, 2 * pages_.capacity()));
  pool_->acquire(wanted - pages_.size(), pages_);
}

LatentKvPool::LatentKvPool(const Dimensions& dimensions, size_t pages)
    : dimensions_(dimensions),
      row_bytes_(latent_row_bytes(dimensions.type, dimensions.width)),
      page_bytes_(saturating_product(bytes_per_token(dimensions), kPageTokens)),
      ids_(std::make_shared<FreeIds>(pages, "pages of latents")),
      memory_(saturating_product(page_bytes_, pages), "latents of the past") {
  memory_.ask_for_huge_pages();  // a step goes through rows that lie on more small pages than a CPU keeps the addresses of
}

size_t LatentKvPool::bytes_per_token(const Dimensions& dimensions) {
  return saturating_product(dimensions.layers, latent_row_bytes(dimensions.type, dimensions.width));
}

void LatentKvPool::raise_full(size_t wanted) const {
  raise(ErrorCode::ResourceExhausted, "the latent pool has {} free pages of {} tokens; {} more are needed", free_pages(),
        kPageTokens, wanted);
}

// Appends `count` zeroed pages. @pre `pages` has room for them
void LatentKvPool::acquire(size_t count, std::vector<PageId>& pages) {
  std::vector<FreeIds::Taken> taken;
  taken.reserve(count);
  if (!ids_->take(count, taken)) raise_full(count);
  for (const auto& [page, fresh] : taken) {
    // Fresh memory is zero already; touching it here would make the whole plan resident.
    if (!fresh && page_bytes_ > 0) std::memset(memory_.data() + page * page_bytes_, 0, page_bytes_);
    pages.push_back(page);
  }
}

std::byte* LatentKvPool::row(size_t layer, std::span<const PageId> pages, size_t position) const {
  const size_t page = pages[position / kPageTokens];
  return memory_.data() + ((page * dimensions_.layers + layer) * kPageTokens + position % kPageTokens) * row_bytes_;
}

void LatentKvPool::write(size_t layer, std::span<const PageId> pages, size_t start, MatView<const float> rows) {
  for (size_t r = 0; r < rows.rows(); ++r)
    store_latent_row(dimensions_.type, rows.row(r), dimensions_.width, row(layer, pages, start + r));
}

void LatentKvPool::read(size_t layer, std::span<const PageId> pages, size_t start, MatView<float> out) const {
  for (size_t r = 0; r < out.rows(); ++r)
    load_latent_row(dimensions_.type, row(layer, pages, start + r), dimensions_.width, out.row(r));
}

}  // namespace kilin

// What the MLA layers remember of the past: one latent and one unrotated key part a token, shared by all heads, in pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/free_ids.h"
#include "core/mat_view.h"
#include "core/reservation.h"
#include "kernels/mla.h"

namespace kilin {

using PageId = uint32_t;

class LatentKvPool;

/// The pages of one sequence, in order of position. Move-only; gives them back when it goes, on any thread, also after the pool
/// has gone.
class PageTable {
 public:
  PageTable() = default;
  explicit PageTable(LatentKvPool& pool);
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable&& other) noexcept;
  ~PageTable();

  /// Takes zeroed pages until `tokens` fit. @pre the pool is still there
  /// @throws ResourceExhausted or bad_alloc, and then holds what it held before
  void grow(size_t tokens);
  std::span<const PageId> pages() const { return pages_; }

 private:
  LatentKvPool* pool_ = nullptr;
  std::shared_ptr<FreeIds> ids_;  // the pool's
  std::vector<PageId> pages_;
};

/// Pages of kPageTokens tokens; a page holds all MLA layers' rows for its tokens. Pages are taken and given back on any thread;
/// reads and writes of different rows may run at once.
class LatentKvPool {
 public:
  static constexpr size_t kPageTokens = kMlaPage;

  struct Dimensions {
    size_t layers;  ///< MLA layers
    size_t width;   ///< kv_lora_rank + qk_rope_head_dim
    KvType type;
  };

  /// Costs address space for `pages`, and memory for those that are used. @throws ResourceExhausted
  LatentKvPool(const Dimensions& dimensions, size_t pages);

  const Dimensions& dimensions() const { return dimensions_; }
  size_t pages() const { return ids_->capacity(); }
  size_t free_pages() const { return ids_->free(); }
  size_t bytes_per_page() const { return page_bytes_; }
  /// The largest number if the true one does not fit.
  static size_t bytes_per_token(const Dimensions& dimensions);
  static size_t pages_for(size_t tokens) { return tokens / kPageTokens + (tokens % kPageTokens != 0); }

  /// Stores rows for the positions from `start`. @param layer counts MLA layers only. @pre the table has pages for them
  void write(size_t layer, std::span<const PageId> pages, size_t start, MatView<const float> rows);
  /// Reads the positions start .. start + out.rows().
  void read(size_t layer, std::span<const PageId> pages, size_t start, MatView<float> out) const;
  /// Where a page's kPageTokens rows of one layer stand, one after the other, as kernels/latent_row.h has them.
  const std::byte* stored_rows(size_t layer, PageId page) const {
    return memory_.data() + (page * dimensions_.layers + layer) * kPageTokens * row_bytes_;
  }

 private:
  friend class PageTable;
  void acquire(size_t count, std::vector<PageId>& pages);
  [[noreturn]] void raise_full(size_t wanted) const;
  std::byte* row(size_t layer, std::span<const PageId> pages, size_t position) const;

  Dimensions dimensions_;
  size_t row_bytes_;
  size_t page_bytes_;
  std::shared_ptr<FreeIds> ids_;  // shared with the tables
  Reservation memory_;
};

}  // namespace kilin

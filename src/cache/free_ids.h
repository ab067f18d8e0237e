// Tracks which slots of a pool are free; the pool owns their contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/mutex.h"

namespace kilin {

/// Hands out the numbers 0 .. capacity() - 1: those that came back first, then fresh ones in order. Costs memory for the
/// numbers that were ever handed out, not for the capacity. Thread-safe.
///
/// A pool and the handles that it gives out share one: a handle gives its number back here, whether or not the pool is still
/// there.
class FreeIds {
 public:
  struct Taken {
    uint32_t id;
    bool fresh;  ///< handed out for the first time
  };

  /// @param what names the numbered things in the error. @throws ResourceExhausted for more than 32 bits can number
  FreeIds(size_t capacity, const char* what);

  size_t capacity() const { return capacity_; }
  size_t free() const KILIN_EXCLUDES(mutex_);

  /// Appends `count` numbers to `taken`, which has room for them, or none at all. Giving them back will not allocate.
  /// @returns false if fewer are free. @throws bad_alloc, and then nothing has changed
  bool take(size_t count, std::vector<Taken>& taken) KILIN_EXCLUDES(mutex_);
  void give_back(uint32_t id) noexcept KILIN_EXCLUDES(mutex_);

 private:
  size_t free_now() const KILIN_REQUIRES(mutex_) { return capacity_ - next_fresh_ + returned_.size(); }

  const size_t capacity_;
  mutable Mutex mutex_;
  size_t next_fresh_ KILIN_GUARDED_BY(mutex_) = 0;           // nobody has had this one or those above
  std::vector<uint32_t> returned_ KILIN_GUARDED_BY(mutex_);  // has room for all below next_fresh_
};

}  // namespace kilin

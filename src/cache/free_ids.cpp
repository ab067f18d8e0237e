#include "cache/free_ids.h"

#include <algorithm>
#include <cassert>

#include "core/error.h"

namespace kilin {

FreeIds::FreeIds(size_t capacity, const char* what) : capacity_(capacity) {
  if (capacity > UINT32_MAX)
    raise(ErrorCode::ResourceExhausted, "a pool of {} {} is too large; at most {} can be numbered", capacity, what, UINT32_MAX);
}

size_t FreeIds::free() const {
  const MutexLock lock(mutex_);
  return free_now();
}

bool FreeIds::take(size_t count, std::vector<Taken>& taken) {
  assert(taken.capacity() - taken.size() >= count);
  const MutexLock lock(mutex_);
  if (count > free_now()) return false;
  const size_t fresh = count - std::min(count, returned_.size());
  const size_t room = next_fresh_ + fresh;
  // Twice as much each time, so that pages which are taken one by one do not move the list with each.
  if (room > returned_.capacity()) returned_.reserve(std::min(capacity_, std::max(room, 2 * returned_.capacity())));
  for (size_t i = 0; i < count; ++i) {
    if (returned_.empty()) {
      taken.push_back({static_cast<uint32_t>(next_fresh_++), true});
    } else {
      taken.push_back({returned_.back(), false});
      returned_.pop_back();
    }
  }
  return true;
}

void FreeIds::give_back(uint32_t id) noexcept {
  const MutexLock lock(mutex_);
  returned_.push_back(id);
}

}  // namespace kilin

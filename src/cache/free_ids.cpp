#include "cache/free_ids.h"

#include <algorithm>
#include <cassert>

#include "core/error.h"

namespace kilin {

FreeIds::FreeIds(size_t capacity, const char* what) : capacity_(capacity) {
  if (capacity > UINT32_MAX)
    raise(ErrorCode::ResourceExhausted, "a pool of {} {} is too large; at most {} can be numbered", capacity, what, UINT32_MAX);
}

void FreeIds::prepare(size_t count) {
  assert(count <= free());
  const size_t fresh = count - std::min(count, returned_.size());
  const size_t room = next_fresh_ + fresh;
  // Twice as much each time, so that pages which are taken one by one do not move the list with each.
  if (room > returned_.capacity()) returned_.reserve(std::min(capacity_, std::max(room, 2 * returned_.capacity())));
}

FreeIds::Taken FreeIds::take() noexcept {
  if (returned_.empty()) return {static_cast<uint32_t>(next_fresh_++), true};
  const uint32_t id = returned_.back();
  returned_.pop_back();
  return {id, false};
}

}  // namespace kilin

#include "core/fair_mutex.h"

namespace kilin {

// Both bodies use the mutex that makes the capability, not the capability itself.

void FairMutex::lock() KILIN_NO_THREAD_SAFETY_ANALYSIS {
  MutexLock lock(mutex_);
  if (depth_ > 0 && owner_ == std::this_thread::get_id()) {
    ++depth_;
    return;
  }
  const uint64_t ticket = next_ticket_++;
  while (served_ != ticket || depth_ > 0) lock.wait(changed_);
  owner_ = std::this_thread::get_id();
  depth_ = 1;
}

void FairMutex::unlock() KILIN_NO_THREAD_SAFETY_ANALYSIS {
  const MutexLock lock(mutex_);
  if (--depth_ > 0) return;
  owner_ = {};
  ++served_;
  changed_.notify_all();
}

}  // namespace kilin

// A mutex that threads get in the order in which they asked for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <thread>

#include "core/mutex.h"

namespace kilin {

/// Fair, so that a thread which locks it again and again keeps nobody else waiting; recursive, so that what is called under the
/// lock may take it too. For locks that are held for long: each hand-over wakes all who wait.
class KILIN_CAPABILITY("mutex") FairMutex {
 public:
  void lock() KILIN_ACQUIRE();
  void unlock() KILIN_RELEASE();

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ticket_ KILIN_GUARDED_BY(mutex_) = 0;
  uint64_t served_ KILIN_GUARDED_BY(mutex_) = 0;  // whose ticket has the lock, or gets it next
  std::thread::id owner_ KILIN_GUARDED_BY(mutex_);
  size_t depth_ KILIN_GUARDED_BY(mutex_) = 0;  // how often the owner locked it
};

/// Holds the lock as long as it lives.
class KILIN_SCOPED_CAPABILITY FairLock {
 public:
  explicit FairLock(FairMutex& mutex) KILIN_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~FairLock() KILIN_RELEASE() { mutex_.unlock(); }
  FairLock(const FairLock&) = delete;
  FairLock& operator=(const FairLock&) = delete;

 private:
  FairMutex& mutex_;
};

/// Lets others have the lock as long as it lives. @pre this thread holds it, and locked it once
class FairUnlock {
 public:
  // The analysis knows no scope that begins by giving back.
  explicit FairUnlock(FairMutex& mutex) KILIN_NO_THREAD_SAFETY_ANALYSIS : mutex_(mutex) { mutex_.unlock(); }
  ~FairUnlock() KILIN_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  FairUnlock(const FairUnlock&) = delete;
  FairUnlock& operator=(const FairUnlock&) = delete;

 private:
  FairMutex& mutex_;
};

}  // namespace kilin

// A mutex whose rules the compiler checks: clang's -Wthread-safety reads the attributes below, other compilers skip them.
// libstdc++'s own mutex carries none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define KILIN_THREAD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define KILIN_THREAD_ATTRIBUTE(...)
#endif

/// Of a class: it can be held, like a mutex.
#define KILIN_CAPABILITY(name) KILIN_THREAD_ATTRIBUTE(capability(name))
/// Of a class: it holds a capability as long as it lives.
#define KILIN_SCOPED_CAPABILITY KILIN_THREAD_ATTRIBUTE(scoped_lockable)
/// Of a member: read and written by whoever holds `x`.
#define KILIN_GUARDED_BY(x) KILIN_THREAD_ATTRIBUTE(guarded_by(x))
/// Of a function: its caller holds, must not hold, takes or gives back what is named.
#define KILIN_REQUIRES(...) KILIN_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define KILIN_EXCLUDES(...) KILIN_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define KILIN_ACQUIRE(...) KILIN_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define KILIN_RELEASE(...) KILIN_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
/// Of a function whose locking the analysis can't follow; its comment says why it is right.
#define KILIN_NO_THREAD_SAFETY_ANALYSIS KILIN_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace kilin {

class KILIN_CAPABILITY("mutex") Mutex {
 public:
  void lock() KILIN_ACQUIRE() { mutex_.lock(); }
  void unlock() KILIN_RELEASE() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a mutex as long as it lives, but while it waits.
class KILIN_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KILIN_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() KILIN_RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  /// Lets go of the mutex until `changed` is notified; may return for no reason.
  void wait(std::condition_variable& changed) { changed.wait(lock_); }
  /// @returns false if the time is over
  bool wait_until(std::condition_variable& changed, std::chrono::steady_clock::time_point end) {
    return changed.wait_until(lock_, end) == std::cv_status::no_timeout;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace kilin

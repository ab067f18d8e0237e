// Where other threads leave what the engine's loop shall do next.
#pragma once

#include <condition_variable>
#include <memory>
#include <vector>

#include "core/mutex.h"

namespace kilin {

class ActiveRequest;

/// Thread-safe. Handles of requests share it with the loop, and may outlive that.
class Mailbox {
 public:
  /// Who takes what lies here.
  enum class Reader : uint8_t {
    Caller,  ///< whoever calls Engine::step
    Thread,  ///< a thread of the engine
    Gone,    ///< nobody any more
  };

  explicit Mailbox(Reader reader);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  Reader reader() const KILIN_EXCLUDES(mutex_);
  void set_reader(Reader reader) KILIN_EXCLUDES(mutex_);

  void put(std::unique_ptr<ActiveRequest> request) KILIN_EXCLUDES(mutex_);
  /// Something has changed that the loop should look at: a request was cancelled.
  void ring() KILIN_EXCLUDES(mutex_);

  /// What was put here since the last call.
  std::vector<std::unique_ptr<ActiveRequest>> take() KILIN_EXCLUDES(mutex_);
  /// Until somebody puts or rings, or the mailbox is closed. @returns false if it is closed
  bool wait() KILIN_EXCLUDES(mutex_);
  /// The loop ends: nothing is taken any more.
  void close() { set_reader(Reader::Gone); }
  bool closed() const KILIN_EXCLUDES(mutex_) { return reader() == Reader::Gone; }

 private:
  mutable Mutex mutex_;
  std::condition_variable changed_;
  Reader reader_ KILIN_GUARDED_BY(mutex_);
  bool rung_ KILIN_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<ActiveRequest>> requests_ KILIN_GUARDED_BY(mutex_);
};

}  // namespace kilin

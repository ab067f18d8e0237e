#include "core/thread_pool.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/float_mode.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kilin {

namespace {

constexpr int kSpins = 2000;  // some 20 to 60 us with the pause: longer than the gap between two stages of a layer

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until `value` is no longer `old`.
void await_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(size_t threads) {
  try {
    workers_.reserve(std::max<size_t>(threads, 1) - 1);
    for (size_t worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
  } catch (const std::exception& error) {  // system_error for want of threads; bad_alloc and length_error for want of memory
    stop();                                // a thread that is not joined would end the program
    raise(ErrorCode::ResourceExhausted, "cannot start {} threads: the system stopped at {} ({})", threads, size(),
          error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

void ThreadPool::take_slices(size_t worker) {
  for (;;) {
    const size_t begin = next_.fetch_add(loop_.grain, std::memory_order_relaxed);
    if (begin >= loop_.n) return;
    try {
      loop_.call(loop_.context, {begin, std::min(begin + loop_.grain, loop_.n), worker});
    } catch (...) {
      if (!has_error_.exchange(true)) error_ = std::current_exception();
      return;
    }
  }
}

void ThreadPool::work(size_t worker) {
  FloatModeGuard float_mode;
  for (uint32_t seen = 0;;) {
    await_change(epoch_, seen);
    seen = epoch_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    take_slices(worker);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadPool::run(const Loop& loop) {
  if (loop.n == 0) return;
  FloatModeGuard float_mode;
  if (workers_.empty() || loop.n <= loop.grain) {
    for (size_t begin = 0; begin < loop.n; begin += loop.grain)
      loop.call(loop.context, {begin, std::min(begin + loop.grain, loop.n), 0});
    return;
  }
  loop_ = loop;
  next_.store(0, std::memory_order_relaxed);
  running_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  take_slices(0);
  for (uint32_t left = running_.load(std::memory_order_acquire); left != 0; left = running_.load(std::memory_order_acquire))
    await_change(running_, left);
  if (has_error_.exchange(false)) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace kilin

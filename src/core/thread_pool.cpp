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

// The parts of gate_: the epoch in the upper half, then these.
constexpr uint64_t kClosed = uint64_t{1} << 31;  // nobody comes in any more
constexpr uint64_t kInside = kClosed - 1;        // how many workers are in

// Waits until `value` is no longer `old`.
template <typename T>
void await_change(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(size_t threads) : gate_(kClosed) {
  try {
    threads = std::max<size_t>(threads, 1);
    runs_ = std::vector<Run>(threads);
    workers_.reserve(threads - 1);
    for (size_t worker = 1; worker < threads; ++worker, ++size_) workers_.emplace_back([this, worker] { work(worker); });
  } catch (const std::exception& error) {  // system_error for want of threads; bad_alloc and length_error for want of memory
    stop();                                // a thread that is not joined would end the program
    raise(ErrorCode::ResourceExhausted, "cannot start {} threads: the system stopped at {} ({})", threads, size(),
          error.what());
  }
}

ThreadPool::ThreadPool(size_t threads, SkipsLoops) : size_(std::max<size_t>(threads, 1)), skips_loops_(true), gate_(kClosed) {}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

void ThreadPool::divide(const Loop& loop) {
  const size_t slices = (loop.n - 1) / loop.grain + 1, each = slices / runs_.size(), rest = slices % runs_.size();
  size_t begin = 0;
  for (size_t i = 0; i < runs_.size(); ++i) {
    runs_[i].next.store(begin, std::memory_order_relaxed);
    begin = runs_[i].end = begin + each + (i < rest ? 1 : 0);
  }
}

void ThreadPool::take_slices(size_t worker) {
  for (size_t i = 0; i < runs_.size(); ++i)
    if (!take_slices(runs_[(worker + i) % runs_.size()], worker)) return;
}

// @returns whether it ended without an exception
bool ThreadPool::take_slices(Run& run, size_t worker) {
  while (run.next.load(std::memory_order_relaxed) < run.end) {  // so that a run that is done is not written any more
    const size_t slice = run.next.fetch_add(1, std::memory_order_relaxed);
    if (slice >= run.end) break;
    try {
      const size_t begin = slice * loop_.grain;
      loop_.call(loop_.context, {begin, begin + std::min(loop_.grain, loop_.n - begin), worker});
    } catch (...) {
      if (!has_error_.exchange(true)) error_ = std::current_exception();
      return false;
    }
  }
  return true;
}

// Comes in, if the loop of that epoch is still open.
bool ThreadPool::enter(uint32_t epoch) {
  for (uint64_t gate = gate_.load(std::memory_order_acquire); gate >> 32 == epoch && (gate & kClosed) == 0;)
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire)) return true;
  return false;
}

void ThreadPool::leave() {
  const uint64_t gate = gate_.fetch_sub(1, std::memory_order_release) - 1;
  if ((gate & kClosed) != 0 && (gate & kInside) == 0) gate_.notify_one();
}

void ThreadPool::work(size_t worker) {
  FloatModeGuard float_mode;
  for (uint32_t seen = 0;;) {
    await_change(epoch_, seen);
    seen = epoch_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!enter(seen)) continue;
    take_slices(worker);
    leave();
  }
}

void ThreadPool::run(const Loop& loop) {
  if (loop.n == 0 || skips_loops_) return;
  FloatModeGuard float_mode;
  if (workers_.empty() || loop.n <= loop.grain) {
    for (size_t begin = 0; begin < loop.n; begin += loop.grain)
      loop.call(loop.context, {begin, std::min(begin + loop.grain, loop.n), 0});
    return;
  }
  loop_ = loop;  // nobody is inside: the last loop has waited for that
  divide(loop);
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  gate_.store(uint64_t{epoch} << 32, std::memory_order_release);
  epoch_.store(epoch, std::memory_order_release);
  epoch_.notify_all();
  take_slices(0);
  uint64_t gate = gate_.fetch_or(kClosed, std::memory_order_acquire) | kClosed;
  while ((gate & kInside) != 0) {
    await_change(gate_, gate);
    gate = gate_.load(std::memory_order_acquire);
  }
  if (has_error_.exchange(false)) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace kilin

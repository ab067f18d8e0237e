// A fixed set of threads that share loops. Owned by whoever runs the model and passed by reference: there is no global pool.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace kilin {

/// Part of a loop: the indices [begin, end) and which of the pool's threads, 0 .. size() - 1, runs them (for per-thread
/// scratch).
struct Slice {
  size_t begin;
  size_t end;
  size_t worker;
};

/// A loop's indices are divided into one run of neighbours a thread, which it takes slice by slice, then what is left of the
/// others' runs: a thread that goes through memory goes on where it was. A loop ends when its slices are done: it waits for no
/// worker that has not come in, so that a machine busy with other things makes it no slower than one thread is. Loops are given
/// by one thread at a time, and a loop's body gives none. Waiting threads spin for some microseconds, then sleep.
class ThreadPool {
 public:
  /// @param threads how many work on a loop, the caller among them; 0 counts as 1
  /// @throws ResourceExhausted if the system has no more threads, or no memory for them
  explicit ThreadPool(size_t threads);

  /// Counts as so many threads and runs nothing: every loop ends at once. For a dry run of code whose work is in loops.
  static ThreadPool that_skips_loops(size_t threads) { return {threads, SkipsLoops()}; }

  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t size() const { return size_; }

  /// Calls body(Slice) for slices of at most `grain` indices that cover [0, n) once; returns when all are done. Which thread
  /// takes which slice is chance, so a body must not let its results depend on that. Does not allocate. Rethrows the first
  /// exception of a body, after the loop has ended.
  template <typename Body>
  void parallel_for(size_t n, size_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run({[](void* context, const Slice& slice) { (*static_cast<Plain*>(context))(slice); },
         const_cast<void*>(static_cast<const void*>(&body)), n, grain == 0 ? 1 : grain});
  }

  /// A loop of one index: body() on this thread. For work on values that can't be shared out.
  template <typename Body>
  void run_alone(Body&& body) {
    parallel_for(1, 1, [&](const Slice&) { body(); });
  }

 private:
  struct SkipsLoops {};
  ThreadPool(size_t threads, SkipsLoops);

  struct Loop {
    void (*call)(void* context, const Slice& slice) = nullptr;
    void* context = nullptr;
    size_t n = 0;
    size_t grain = 1;
  };
  /// One thread's run of slices: which comes next, and where they end.
  struct alignas(64) Run {
    std::atomic<size_t> next{0};
    size_t end = 0;
  };
  void run(const Loop& loop);
  void divide(const Loop& loop);
  void take_slices(size_t worker);
  bool take_slices(Run& run, size_t worker);
  void work(size_t worker);
  bool enter(uint32_t epoch);
  void leave();
  void stop();

  std::vector<std::thread> workers_;
  size_t size_ = 1;
  bool skips_loops_ = false;
  Loop loop_;
  std::exception_ptr error_;                    // the first one; written by whoever set has_error_
  std::vector<Run> runs_;                       // by thread
  alignas(64) std::atomic<uint32_t> epoch_{0};  // counts loops; a change is the signal to start
  alignas(64) std::atomic<uint64_t> gate_;      // epoch of the loop, whether it is closed, and how many workers are inside
  std::atomic<bool> has_error_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace kilin

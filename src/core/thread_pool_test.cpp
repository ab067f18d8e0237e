#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/allocations.h"

namespace kilin {
namespace {

TEST(ThreadPool, CoversEveryIndexOnceAtEverySize) {
  for (size_t threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (size_t n : {0, 1, 2, 7, 64, 1000})
      for (size_t grain : {0, 1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> visits(n);
        std::atomic<bool> slices_are_right{true};
        pool.parallel_for(n, grain, [&](const Slice& slice) {
          const size_t length = slice.end - slice.begin;
          if (slice.worker >= threads || slice.end > n || length == 0 || length > std::max<size_t>(grain, 1))
            slices_are_right = false;
          else
            for (size_t i = slice.begin; i < slice.end; ++i) ++visits[i];
        });
        ASSERT_TRUE(slices_are_right) << threads << " threads, n " << n << ", grain " << grain;
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(visits[i], 1) << i << " of " << n << ", grain " << grain;
      }
  }
}

TEST(ThreadPool, OfZeroThreadsIsTheCallerAlone) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.size(), 1u);
  size_t sum = 0;
  pool.parallel_for(10, 3, [&](const Slice& slice) { sum += slice.end - slice.begin; });
  EXPECT_EQ(sum, 10u);
}

TEST(ThreadPool, ALoopIsOverWhenTheCallReturns) {
  ThreadPool pool(4);
  std::vector<uint32_t> data(97, 0);  // plain numbers: a slice still running would be a race
  for (uint32_t loop = 1; loop <= 3000; ++loop) {
    pool.parallel_for(data.size(), 5, [&](const Slice& slice) {
      for (size_t i = slice.begin; i < slice.end; ++i) data[i] += loop;
    });
    ASSERT_EQ(data[loop % data.size()], loop * (loop + 1) / 2);
  }
}

TEST(ThreadPool, NeverRunsTwoSlicesOfOneWorkerAtOnce) {
  ThreadPool pool(4);
  std::vector<uint64_t> scratch(pool.size(), 0);  // a race here, if two threads had one number
  for (int loop = 0; loop < 200; ++loop) pool.parallel_for(200, 1, [&](const Slice& slice) { ++scratch[slice.worker]; });
  uint64_t total = 0;
  for (uint64_t n : scratch) total += n;
  EXPECT_EQ(total, 200u * 200u);
}

TEST(ThreadPool, RethrowsOneExceptionAfterTheLoopAndStaysUsable) {
  for (size_t threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int loop = 0; loop < 50; ++loop) {
      std::atomic<int> inside{0};
      try {
        pool.parallel_for(100, 1, [&](const Slice& slice) {
          ++inside;
          if (slice.begin % 10 == 3) {
            --inside;
            throw std::runtime_error("index " + std::to_string(slice.begin));
          }
          --inside;
        });
        ADD_FAILURE() << "no exception with " << threads << " threads";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(std::string(error.what()).rfind("index ", 0), 0u);
      }
      EXPECT_EQ(inside, 0);
      std::atomic<size_t> covered{0};
      pool.parallel_for(100, 7, [&](const Slice& slice) { covered += slice.end - slice.begin; });
      ASSERT_EQ(covered, 100u) << "the loop after one that threw";
    }
  }
}

TEST(ThreadPool, ALoopAllocatesNothing) {
  for (size_t threads : {1, 4}) {
    ThreadPool pool(threads);
    std::vector<int> data(1000);
    const auto loop = [&] {
      pool.parallel_for(data.size(), 10, [&](const Slice& slice) {
        for (size_t i = slice.begin; i < slice.end; ++i) ++data[i];
      });
    };
    loop();
    const size_t before = testing::allocations();
    for (int i = 0; i < 100; ++i) loop();
    EXPECT_EQ(testing::allocations(), before);
  }
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST(ThreadPool, EveryThreadOfALoopFlushesSubnormals) {
  const volatile float subnormal = 1e-40f;
  for (size_t threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::atomic<bool> operand_kept{false}, result_kept{false};
    for (int loop = 0; loop < 50; ++loop)
      pool.parallel_for(64, 1, [&](const Slice&) {
        const volatile float least = 1.2e-38f;
        if (subnormal * 1e10f != 0.0f) operand_kept = true;
        if (least * 0.25f != 0.0f) result_kept = true;
      });
    EXPECT_FALSE(operand_kept);
    EXPECT_FALSE(result_kept);
    EXPECT_NE(subnormal * 1e10f, 0.0f) << "outside of loops the caller's mode is its own";
  }
}
#endif

TEST(ThreadPool, ManyPoolsComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(3);
    if (i % 2 == 0) continue;  // never used
    std::atomic<int> calls{0};
    pool.parallel_for(8, 1, [&](const Slice&) { ++calls; });
    ASSERT_EQ(calls, 8);
  }
}

TEST(ThreadPool, WithoutMemoryForAllThreadsIsAnErrorAndEndsThoseThatStand) {
  size_t refused = 0;
  for (bool failed = true; failed; refused += failed) {
    const testing::FailingAllocation failing(refused);
    try {
      ThreadPool pool(4);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted) << error.what();
    }
    failed = failing.happened();
  }
  EXPECT_GE(refused, 4u) << "the list of threads, and something for each of three";
  try {
    ThreadPool pool(SIZE_MAX);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted) << error.what();
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// With a bound on the address space the stacks of a thousand threads do not fit.
[[noreturn]] void ask_for_too_many_threads() {
  rlimit limit{size_t{1} << 28, size_t{1} << 28};
  ::setrlimit(RLIMIT_AS, &limit);
  try {
    ThreadPool pool(1000);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::exit(error.code() == ErrorCode::ResourceExhausted ? 3 : 4);
  }
  std::exit(5);
}

TEST(ThreadPoolDeathTest, ThreadsThatCannotBeHadAreAnError) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(ask_for_too_many_threads(), ::testing::ExitedWithCode(3), "cannot start 1000 threads: the system stopped at");
}
#endif

TEST(ThreadPool, RunsAloneOnTheThreadThatAsks) {
  ThreadPool pool(4);
  std::thread::id ran_on;
  pool.run_alone([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(ThreadPool, OneThatSkipsLoopsCountsItsThreadsAndRunsNothing) {
  ThreadPool pool = ThreadPool::that_skips_loops(1000);
  EXPECT_EQ(pool.size(), 1000u);
  EXPECT_EQ(ThreadPool::that_skips_loops(0).size(), 1u);
  pool.parallel_for(100, 1, [](const Slice&) { ADD_FAILURE(); });
  pool.run_alone([] { ADD_FAILURE(); });
}

}  // namespace
}  // namespace kilin

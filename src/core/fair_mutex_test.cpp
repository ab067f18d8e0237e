#include "core/fair_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace kilin {
namespace {

TEST(FairMutex, OneThreadAtATimeHoldsIt) {
  FairMutex mutex;
  int inside = 0;
  bool shared = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        const FairLock lock(mutex);
        shared = shared || ++inside != 1;
        --inside;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared);
}

TEST(FairMutex, WhoHoldsItMayLockItAgain) {
  FairMutex mutex;
  bool came = false;
  std::thread other;
  {
    const FairLock outer(mutex);
    const auto lock_again = [&]() KILIN_NO_THREAD_SAFETY_ANALYSIS { const FairLock inner(mutex); };  // it knows no recursion
    lock_again();
    other = std::thread([&] {
      const FairLock lock(mutex);
      came = true;
    });
    EXPECT_FALSE(came);  // the inner one's end gave nothing away
  }
  other.join();
  EXPECT_TRUE(came);
}

TEST(FairMutex, AThreadThatLocksItAgainAndAgainKeepsNobodyWaiting) {
  FairMutex mutex;
  std::atomic<bool> came = false, greedy_runs = false;
  std::thread greedy([&] {
    while (!came) {
      const FairLock lock(mutex);
      greedy_runs = true;
    }
  });
  while (!greedy_runs) std::this_thread::yield();
  {
    const FairLock lock(mutex);  // an unfair lock might never give it
    came = true;
  }
  greedy.join();
}

TEST(FairMutex, UnlockingForAWhileLetsOthersGoOn) {
  FairMutex mutex;
  std::atomic<bool> came = false;
  const FairLock mine(mutex);
  std::thread other([&] {
    const FairLock lock(mutex);
    came = true;
  });
  {
    const FairUnlock pause(mutex);
    other.join();
  }
  EXPECT_TRUE(came);
}

}  // namespace
}  // namespace kilin

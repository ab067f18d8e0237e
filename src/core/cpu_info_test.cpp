#include "core/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <vector>

namespace kilin {
namespace {

TEST(CpuInfo, IsTheSameEveryTimeAndConsistent) {
  const CpuInfo info = CpuInfo::detect();
  EXPECT_EQ(info.name, CpuInfo::detect().name);
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.logical_cpus, 1u);
  if (info.avx512) {
    EXPECT_TRUE(info.avx2);
  }
  if (info.avx512_bf16) {
    EXPECT_TRUE(info.avx512);
  }
  if (info.avx2) {
    EXPECT_TRUE(info.f16c);
  }
}

TEST(CpuInfo, ThreadsFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  const size_t all = usable_threads();
  EXPECT_GE(all, 1u);
  EXPECT_LE(all, static_cast<size_t>(CPU_COUNT(&before)));

  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_threads(), 1u);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(usable_threads(), all);
}

TEST(CpuInfo, MemoryIsThereAndPartOfItIsFree) {
  const MemoryInfo memory = MemoryInfo::detect();
  EXPECT_GT(memory.total, uint64_t{64} << 20);
  EXPECT_GT(memory.available, 0u);
  EXPECT_LE(memory.available, memory.total);
}

TEST(CpuInfo, ThePeakOfThisProcessGrowsWithWhatItTouches) {
  const uint64_t before = peak_resident_bytes();
  EXPECT_GT(before, 0u);
  const std::vector<char> much(before + (64 << 20), 1);
  EXPECT_GE(peak_resident_bytes(), before + (64 << 20));
  EXPECT_EQ(much.back(), 1);
}

}  // namespace
}  // namespace kilin

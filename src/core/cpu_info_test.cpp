#include "core/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;

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

TEST(CpuInfo, ThreadsFollowTheQuotaRoundedUpAndAreAtLeastOne) {
  const testing::TemporaryFolder root;
  fs::create_directories(root / "proc/self");
  fs::create_directories(root / "sys/fs/cgroup");
  std::ofstream(root / "proc/self/cgroup") << "0::/\n";
  const size_t all = usable_threads(root.path());
  const auto with_quota = [&](const std::string& cpu_max) {
    std::ofstream(root / "sys/fs/cgroup/cpu.max") << cpu_max << '\n';
    return usable_threads(root.path());
  };
  EXPECT_EQ(with_quota("max 100000"), all);
  EXPECT_EQ(with_quota("100000 100000"), 1u);
  EXPECT_EQ(with_quota("100001 100000"), std::min<size_t>(all, 2)) << "a part of a CPU counts as one, however small";
  EXPECT_EQ(with_quota("1000 100000"), 1u);
  EXPECT_EQ(with_quota("1e300 1"), all);
}

TEST(CpuInfo, MemoryIsThatOfTheMachineUnlessACgroupHasLess) {
  const testing::TemporaryFolder root;
  fs::create_directories(root / "proc/self");
  fs::create_directories(root / "sys/fs/cgroup");
  std::ofstream(root / "proc/self/cgroup") << "0::/\n";
  std::ofstream(root / "proc/meminfo") << "MemTotal:  4000 kB\nMemFree: 1 kB\nMemAvailable:  3000 kB\n";
  const auto with_limit = [&](const std::string& most, const std::string& used) {
    std::ofstream(root / "sys/fs/cgroup/memory.max") << most << '\n';
    std::ofstream(root / "sys/fs/cgroup/memory.current") << used << '\n';
    const MemoryInfo info = MemoryInfo::detect(root.path());
    return std::pair(info.total, info.available);
  };
  EXPECT_EQ(with_limit("max", "500"), std::pair(uint64_t{4096000}, uint64_t{3072000}));
  EXPECT_EQ(with_limit("99999999999", "500"), std::pair(uint64_t{4096000}, uint64_t{3072000}));
  EXPECT_EQ(with_limit("1000000", "400000"), std::pair(uint64_t{1000000}, uint64_t{600000}));
  EXPECT_EQ(with_limit("3500000", "0"), std::pair(uint64_t{3500000}, uint64_t{3072000}));
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

#include "core/cgroup.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;

// A machine's /proc and /sys of which only what a test writes is there.
class CgroupTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const fs::path path = root_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  void write_group(const std::string& folder, const std::string& file, const std::string& text) {
    write("sys/fs/cgroup/" + folder + "/" + file, text);
  }
  CgroupLimits read() const { return CgroupLimits::read(root_.path()); }

 private:
  const testing::TemporaryFolder root_;
};

TEST_F(CgroupTest, WithoutFilesThereAreNoBounds) {
  EXPECT_FALSE(read().cpus || read().memory || read().memory_headroom);
  write("proc/self/cgroup", "nonsense\n0:\n\n:::\n0::/a/b");
  write_group("a/b", "cpu.max", "garbage");
  write_group("a/b", "memory.max", "-5");
  EXPECT_FALSE(read().cpus || read().memory || read().memory_headroom);
}

TEST_F(CgroupTest, ABoundOfAnyGroupAboveHolds) {
  write("proc/self/cgroup", "0::/pod/box/leaf");
  for (const char* folder : {"", "pod", "pod/box", "pod/box/leaf"}) {
    write_group(folder, "cpu.max", "max 100000");
    write_group(folder, "memory.max", "max");
  }
  EXPECT_FALSE(read().cpus || read().memory || read().memory_headroom);
  for (const char* folder : {"", "pod", "pod/box", "pod/box/leaf"}) {
    write_group(folder, "cpu.max", "250000 100000");
    write_group(folder, "memory.max", "5000000000");
    write_group(folder, "memory.current", "1000000000");
    EXPECT_EQ(read().cpus, 2.5) << folder;
    EXPECT_EQ(read().memory, 5000000000u) << folder;
    EXPECT_EQ(read().memory_headroom, 4000000000u) << folder;
    write_group(folder, "cpu.max", "max 100000");
    write_group(folder, "memory.max", "max");
  }
}

TEST_F(CgroupTest, TheTightestOfSeveralBoundsHoldsForEachKindAlone) {
  write("proc/self/cgroup", "0::/a/b");
  write_group("a", "cpu.max", "150000 100000");
  write_group("a/b", "cpu.max", "800000 200000");
  write_group("a", "memory.max", "900");
  write_group("a", "memory.current", "850");
  write_group("a/b", "memory.max", "500");
  write_group("a/b", "memory.current", "100");
  EXPECT_EQ(read().cpus, 1.5);
  EXPECT_EQ(read().memory, 500u);
  EXPECT_EQ(read().memory_headroom, 50u) << "the larger group is the fuller one";
}

TEST_F(CgroupTest, FilePagesThatCanBeDroppedCountAsFree) {
  write("proc/self/cgroup", "0::/");
  write_group("", "memory.max", "1000");
  write_group("", "memory.current", "900");
  write_group("", "memory.stat", "anon 100\nactive_file 300\nfile 800\ninactive_file 400\nslab 7");
  EXPECT_EQ(read().memory_headroom, 800u);
  write_group("", "memory.stat", "active_file 3000");
  EXPECT_EQ(read().memory_headroom, 1000u);
  write_group("", "memory.current", "5000");
  write_group("", "memory.stat", "anon 5000");
  EXPECT_EQ(read().memory_headroom, 0u);
}

TEST_F(CgroupTest, FoldersThatAContainerDoesNotSeeAreSkipped) {
  write_group("", "cpu.max", "300000 100000");
  write("proc/self/cgroup", "0::/host/name/of/this");
  EXPECT_EQ(read().cpus, 3.0);
  write("sys/fs/other/cpu.max", "100000 100000");
  write("proc/self/cgroup", "0::/../other");
  EXPECT_EQ(read().cpus, 3.0) << "nothing outside of the mount is read";
}

TEST_F(CgroupTest, Version1HasAFolderForEachController) {
  write("proc/self/cgroup", "9:name=systemd:/x\n5:memory:/m/n\n4:cpu,cpuacct:/c:d/e\n0::/");
  write_group("cpu/c:d", "cpu.cfs_quota_us", "50000");
  write_group("cpu/c:d", "cpu.cfs_period_us", "100000");
  write_group("cpu/c:d/e", "cpu.cfs_quota_us", "-1");
  write_group("cpu/c:d/e", "cpu.cfs_period_us", "100000");
  write_group("memory", "memory.limit_in_bytes", "9223372036854771712");  // no bound
  write_group("memory/m", "memory.limit_in_bytes", "4000");
  write_group("memory/m", "memory.usage_in_bytes", "3000");
  write_group("memory/m", "memory.stat", "inactive_file 1\ntotal_inactive_file 1500\ntotal_active_file 500");
  EXPECT_EQ(read().cpus, 0.5);
  EXPECT_EQ(read().memory, 4000u);
  EXPECT_EQ(read().memory_headroom, 3000u);
}

TEST_F(CgroupTest, BothVersionsMayBeThereAtOnce) {
  write("proc/self/cgroup", "2:cpu:/a\n0::/b");
  write_group("cpu/a", "cpu.cfs_quota_us", "400000");
  write_group("cpu/a", "cpu.cfs_period_us", "100000");
  write_group("unified/b", "memory.max", "777");
  EXPECT_EQ(read().cpus, 4.0);
  EXPECT_EQ(read().memory, 777u);
}

}  // namespace
}  // namespace kilin

#include "core/folder_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

std::string refusal(const fs::path& folder) {
  try {
    const FolderLock lock(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FolderLock, MakesTheFolderAndKeepsOthersOutWhileItLives) {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder / "a/b");
    EXPECT_TRUE(lock.is_new());
    EXPECT_NE(refusal(folder / "a/b").find("b: another process is writing there"), std::string::npos);
    EXPECT_EQ(refusal(folder / "a"), "");
  }
  EXPECT_FALSE(FolderLock(folder / "a/b").is_new());
}

TEST(FolderLock, OfAFileIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  EXPECT_NE(refusal(folder / "file").find("is a file"), std::string::npos);
}

TEST(FolderLock, OfSeveralAtOnceOneHasIt) {
  const TemporaryFolder folder;
  std::atomic<int> holders{0}, tries{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      std::optional<FolderLock> lock;
      try {
        lock.emplace(folder / "new");
        ++holders;
      } catch (const Error&) {
      }
      ++tries;
      while (tries < 4) std::this_thread::yield();  // nobody gives it up before all have tried
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(holders, 1);
}

TEST(FolderLock, AFolderThatItsOwnerTookAwayIsMadeAnew) {
  const TemporaryFolder folder;
  const FolderLock first(folder / "new");
  fs::remove(folder / "new");
  const FolderLock second(folder / "new");
  EXPECT_TRUE(second.is_new());
  EXPECT_TRUE(fs::is_directory(folder / "new"));
}

}  // namespace
}  // namespace kilin

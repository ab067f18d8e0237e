#include "support/golden.h"

#include <gtest/gtest.h>

#include <fstream>

namespace kilin::testing {
namespace {

TEST(Golden, NamesWhatIsThereAndNothingElse) {
  EXPECT_FALSE(golden("no/such/file.npy"));
  EXPECT_TRUE(std::filesystem::exists(in_repository("CMakeLists.txt")));
}

TEST(TemporaryFolder, GoesAwayWithItsFiles) {
  std::filesystem::path path;
  {
    TemporaryFolder folder;
    path = folder.path();
    std::ofstream(folder / "file") << "x";
    EXPECT_TRUE(std::filesystem::exists(path / "file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace kilin::testing

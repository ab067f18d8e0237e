#include "cli/terminal/progress.h"

#include <gtest/gtest.h>

namespace kilin::cli {
namespace {

TEST(Progress, TheBarFillsFromNothingToAll) {
  EXPECT_EQ(progress_line("loading", 0, 8, 1), "loading [" + std::string(40, ' ') + "]   0%");
  EXPECT_EQ(progress_line("loading", 4, 8, 1), "loading [" + std::string(20, '#') + std::string(20, ' ') + "]  50%");
  EXPECT_EQ(progress_line("loading", 8, 8, 1), "loading [" + std::string(40, '#') + "] 100%");
  EXPECT_EQ(progress_line("loading", 0, 0, 1), "loading [" + std::string(40, '#') + "] 100%");
}

TEST(Progress, TellsTheTimeThatIsLeftWhereItCan) {
  const auto left = [](uint64_t done, double seconds) {
    const std::string line = progress_line("packing", done, 1000, seconds);
    return line.substr(line.find('%') + 1);
  };
  EXPECT_EQ(left(500, 125), "  2:05 left");
  EXPECT_EQ(left(500, 3725), "  1:02:05 left");
  EXPECT_EQ(left(900, 63), "  0:07 left");
  EXPECT_EQ(left(5, 100), "") << "of the first half per cent nothing follows";
  EXPECT_EQ(left(999, 100), "");
  EXPECT_EQ(left(1000, 100), "");
}

}  // namespace
}  // namespace kilin::cli

#include "cli/progress.h"

#include <gtest/gtest.h>

namespace kilin::cli {
namespace {

TEST(Progress, TheBarFillsFromNothingToAll) {
  EXPECT_EQ(progress_line("loading", 0, 8), "loading [" + std::string(40, ' ') + "]   0%");
  EXPECT_EQ(progress_line("loading", 4, 8), "loading [" + std::string(20, '#') + std::string(20, ' ') + "]  50%");
  EXPECT_EQ(progress_line("loading", 8, 8), "loading [" + std::string(40, '#') + "] 100%");
  EXPECT_EQ(progress_line("loading", 0, 0), "loading [" + std::string(40, '#') + "] 100%");
}

}  // namespace
}  // namespace kilin::cli

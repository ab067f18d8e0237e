#include "cli/terminal/progress.h"

#include <gtest/gtest.h>

namespace kilin::cli {
namespace {

TEST(Progress, TheBarFillsFromNothingToAll) {
  EXPECT_EQ(progress_line("loading", 0, 8, 1, 79), "loading [" + std::string(40, ' ') + "]   0%");
  EXPECT_EQ(progress_line("loading", 4, 8, 1, 79), "loading [" + std::string(20, '#') + std::string(20, ' ') + "]  50%");
  EXPECT_EQ(progress_line("loading", 8, 8, 1, 79), "loading [" + std::string(40, '#') + "] 100%");
  EXPECT_EQ(progress_line("loading", 0, 0, 1, 79), "loading [" + std::string(40, '#') + "] 100%");
}

TEST(Progress, TellsTheTimeThatIsLeftWhereItCan) {
  const auto left = [](uint64_t done, double seconds) {
    const std::string line = progress_line("packing", done, 1000, seconds, 79);
    return line.substr(line.find('%') + 1);
  };
  EXPECT_EQ(left(500, 125), "  2:05 left");
  EXPECT_EQ(left(500, 3725), "  1:02:05 left");
  EXPECT_EQ(left(900, 63), "  0:07 left");
  EXPECT_EQ(left(5, 100), "") << "of the first half per cent nothing follows";
  EXPECT_EQ(left(999, 100), "");
  EXPECT_EQ(left(1000, 100), "");
}

TEST(Progress, NoLineIsWiderThanTheTerminal) {
  for (const char* what : {"loading", "reading the prompt", "looking inside"})
    for (size_t columns = 0; columns < 100; ++columns)
      for (uint64_t done : {0, 17, 500, 1000})
        EXPECT_LE(progress_line(what, done, 1000, 70000, columns).size(), columns) << what << ", " << columns << " columns";
  EXPECT_EQ(progress_line("reading the prompt", 500, 1000, 125, 39), "reading the prompt [######       ]  50%");
  EXPECT_EQ(progress_line("loading", 500, 1000, 125, 39), "loading [######       ]  50%  2:05 left");
  EXPECT_EQ(progress_line("reading the prompt", 500, 1000, 125, 24), "reading the prompt  50%");
}

}  // namespace
}  // namespace kilin::cli

#include "cli/report/generation_report.h"

#include <gtest/gtest.h>

namespace kilin::cli {
namespace {

TEST(GenerationReport, ASingleTokenHasNoRate) {
  EXPECT_EQ(tokens_and_rate(0, 0, 1), "no token");
  EXPECT_EQ(tokens_and_rate(1, 1, 0.25), "1 token");
  EXPECT_EQ(tokens_and_rate(5, 4, 2), "5 tokens, 2.0 tokens/s");
}

}  // namespace
}  // namespace kilin::cli

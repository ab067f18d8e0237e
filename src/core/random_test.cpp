#include "core/random.h"

#include <gtest/gtest.h>

#include <set>

namespace kilin {
namespace {

// These values are part of what a seed promises: a change of them changes every sampled text.
TEST(Random, IsFixedForEverByItsKeys) {
  EXPECT_EQ(random_bits(0, 0), 0xa706dd2f4d197e6fu);
  EXPECT_EQ(random_bits(0, 1), 0xb382a305f4414f5eu);
  EXPECT_EQ(random_bits(1, 0), 0x5e41ab087439611eu);
  EXPECT_EQ(random_bits(42, 1000), 0xb1fc8c824d524899u);
  EXPECT_EQ(random_bits(UINT64_MAX, UINT64_MAX), 0x445018e305810b78u);
  EXPECT_EQ(random_uniform(42, 1000), 0.6952598398323256);
}

TEST(Random, NeighbouringKeysShareNothing) {
  std::set<uint64_t> seen;
  double sum = 0;
  int ones = 0;
  for (uint64_t seed = 0; seed < 100; ++seed)
    for (uint64_t counter = 0; counter < 100; ++counter) {
      seen.insert(random_bits(seed, counter));
      const double u = random_uniform(seed, counter);
      EXPECT_GE(u, 0.0);
      EXPECT_LT(u, 1.0);
      sum += u;
      ones += __builtin_popcountll(random_bits(seed, counter));
    }
  EXPECT_EQ(seen.size(), 10000u);
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);  // five standard deviations
  EXPECT_NEAR(ones / 10000.0, 32.0, 0.2);
}

}  // namespace
}  // namespace kilin

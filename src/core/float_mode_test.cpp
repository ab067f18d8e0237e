#include "core/float_mode.h"

#include <gtest/gtest.h>

namespace kilin {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)  // where the guard does something
float scaled(float x, float factor) {
  const volatile float a = x, b = factor;  // computed here and now, not by the compiler
  return a * b;
}

TEST(FloatMode, FlushesSubnormalResultsAndOperandsWhileItLives) {
  EXPECT_NE(scaled(1.2e-38f, 0.25f), 0.0f);
  EXPECT_NE(scaled(1e-40f, 1e10f), 0.0f);
  {
    const FloatModeGuard guard;
    EXPECT_EQ(scaled(1.2e-38f, 0.25f), 0.0f);
    EXPECT_EQ(scaled(1e-40f, 1e10f), 0.0f);
    { const FloatModeGuard again; }
    EXPECT_EQ(scaled(1e-40f, 1e10f), 0.0f) << "an inner guard leaves what it found";
    EXPECT_EQ(scaled(1.5f, 2.0f), 3.0f);
  }
  EXPECT_NE(scaled(1.2e-38f, 0.25f), 0.0f);
}
#endif

}  // namespace
}  // namespace kilin

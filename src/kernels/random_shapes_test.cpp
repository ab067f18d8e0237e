// The cases that the fuzzer of the kernels draws from its input (fuzz/kernels_fuzz.cpp), drawn from seeds: each op of each
// instruction set against its naive form.
#include <gtest/gtest.h>

#include "core/float_mode.h"
#include "support/kernel_cases.h"

namespace kilin {
namespace {

class SeededChoices final : public testing::Choices {
 public:
  explicit SeededChoices(uint64_t seed) : seed_(seed) {}
  size_t integer(size_t low, size_t high) override { return low + random_bits(seed_, counter_++) % (high - low + 1); }

 private:
  uint64_t seed_, counter_ = 0;
};

TEST(KernelsOnRandomShapes, EachOpAgreesWithItsNaiveForm) {
  const FloatModeGuard float_mode;
  size_t op = 0;
  for_each_kernel_op([&](const auto& each) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      SeededChoices choices(seed * kKernelOpCount + op);
      EXPECT_NO_THROW(testing::kKernelCases[op](choices)) << each.name << ", seed " << seed;
    }
    ++op;
  });
}

TEST(KernelsOnRandomShapes, ComparisonsCanFail) {
  const std::vector<float> a = {1, 2}, b = {1, 2.5f}, nan = {1, std::nanf("")};
  EXPECT_THROW(testing::expect_near(
                   b, a, [](size_t) { return 0.4; }, ""),
               testing::KernelDiffers);
  EXPECT_NO_THROW(testing::expect_near(
      b, a, [](size_t) { return 0.6; }, ""));
  EXPECT_THROW(testing::expect_near(
                   nan, a, [](size_t) { return 1e9; }, ""),
               testing::KernelDiffers);
  EXPECT_THROW(testing::expect_bytes(a, b, ""), testing::KernelDiffers);
}

}  // namespace
}  // namespace kilin

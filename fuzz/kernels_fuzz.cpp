// Every kernel of every instruction set of this CPU gives what its naive form gives, on shapes, strides and values that the
// fuzzer chooses, and reads and writes nothing beside its rows.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdio>
#include <cstdlib>

#include "core/float_mode.h"
#include "support/kernel_cases.h"

namespace {

class FuzzedChoices final : public kilin::testing::Choices {
 public:
  FuzzedChoices(const uint8_t* data, size_t size) : data_(data, size) {}
  size_t integer(size_t low, size_t high) override { return data_.ConsumeIntegralInRange(low, high); }

 private:
  FuzzedDataProvider data_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedChoices choices(data, size);
  const size_t op = choices.integer(0, kilin::kKernelOpCount - 1);
  const kilin::FloatModeGuard float_mode;  // as a model runs
  try {
    kilin::testing::kKernelCases[op](choices);
  } catch (const kilin::testing::KernelDiffers& differs) {
    size_t i = 0;
    kilin::for_each_kernel_op([&](const auto& each) {
      if (i++ == op) std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(each.name.size()), each.name.data(), differs.what());
    });
    std::abort();
  }
  return 0;
}

// AddressSanitizer sees what vector instructions access, both whole vectors and the rest of a row.
#include "kernels/generic/reach.h"

#include <gtest/gtest.h>

#include <memory>

#include "support/kernels.h"

namespace kilin {
namespace {

TEST(Reach, OfAKernelBeyondItsRowIsFoundByASanitiser) {
  if (!kReachIsChecked) GTEST_SKIP() << "not built with AddressSanitizer";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const testing::Form& form : testing::isa_forms()) {
    for (size_t n : {7u, 64u}) {  // less than a vector, and whole vectors only
      const std::unique_ptr<float[]> whole(new float[n]()), half(new float[n / 2]());
      form.table.add({whole.get(), 1, n, n}, {whole.get(), 1, n, n});
      EXPECT_DEATH(form.table.add({half.get(), 1, n, n}, {whole.get(), 1, n, n}), "heap-buffer-overflow") << form.name;
      EXPECT_DEATH(form.table.add({whole.get(), 1, n, n}, {half.get(), 1, n, n}), "heap-buffer-overflow") << form.name;
    }
  }
}

}  // namespace
}  // namespace kilin

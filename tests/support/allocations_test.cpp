#include "support/allocations.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

namespace kilin::testing {
namespace {

struct alignas(64) Line {
  char bytes[64];
};

// Keeps the compiler from leaving out a `new` whose object nobody sees.
void show(const void* p) { asm volatile("" : : "g"(p) : "memory"); }

template <typename F>
size_t allocations_of(F&& f) {
  const size_t before = allocations();
  f();
  return allocations() - before;
}

TEST(Allocations, CountsObjectsArraysAndAlignedOnes) {
  EXPECT_EQ(allocations_of([] { show(std::make_unique<int>(7).get()); }), 1u);
  EXPECT_EQ(allocations_of([] { show(std::unique_ptr<int[]>(new int[8]).get()); }), 1u);
  EXPECT_EQ(allocations_of([] { show(std::vector<Line>(3).data()); }), 1u);
  EXPECT_EQ(allocations_of([] {}), 0u);
}

TEST(Allocations, FailWhenToldToAndOnce) {
  const auto allocate_thrice = [] {
    int failed = 0;
    for (int i = 0; i < 3; ++i) {
      try {
        show(std::make_unique<int>(i).get());
      } catch (const std::bad_alloc&) {
        failed += 1 << i;
      }
    }
    return failed;
  };
  for (size_t allowed = 0; allowed < 5; ++allowed) {
    const FailingAllocation failing(allowed);
    EXPECT_EQ(allocate_thrice(), allowed < 3 ? 1 << allowed : 0);
    EXPECT_EQ(failing.happened(), allowed < 3);
  }
  EXPECT_EQ(allocate_thrice(), 0);
}

}  // namespace
}  // namespace kilin::testing

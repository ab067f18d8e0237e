// Counts the program's heap allocations by `new`, and can make one fail. A test program that uses this file gets its own
// operators new and delete.
#pragma once

#include <cstddef>

namespace kilin::testing {

/// How often any thread of this program has called operator new so far.
size_t allocations();

/// During its lifetime, this thread's operator new succeeds `allowed` times, then throws bad_alloc once, then succeeds again.
/// Only one at a time.
class FailingAllocation {
 public:
  explicit FailingAllocation(size_t allowed);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  bool happened() const;
};

}  // namespace kilin::testing

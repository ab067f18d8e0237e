// Counts what the program takes from the heap by `new`, and can refuse it. A test program that uses either gets operators of
// its own.
#pragma once

#include <cstddef>

namespace kilin::testing {

/// How often any thread of this program has called operator new so far.
size_t allocations();

/// While it lives, this thread's operator new gives `allowed` times what is asked for, then throws bad_alloc once and after
/// that gives again. One at a time.
class FailingAllocation {
 public:
  explicit FailingAllocation(size_t allowed);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  bool happened() const;
};

}  // namespace kilin::testing

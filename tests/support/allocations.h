// Counts what the program takes from the heap by `new`. A test program that calls allocations() gets counting operators.
#pragma once

#include <cstddef>

namespace kilin::testing {

/// How often any thread of this program has called operator new so far.
size_t allocations();

}  // namespace kilin::testing

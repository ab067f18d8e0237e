// Reads every value of a stored tensor: whether all are finite, and what they look like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/tensor_store.h"
#include "core/thread_pool.h"

namespace kilin {

/// What stands in a tensor that should hold finite numbers only. Integers are always finite.
struct FiniteScan {
  uint64_t nans = 0;
  uint64_t infinities = 0;
  std::optional<size_t> first;  ///< index of the first NaN or infinity, counted along the rows
  bool all_zero = true;         ///< no value but 0: what a hole in a file reads as

  bool finite() const { return nans == 0 && infinities == 0; }
};

/// Reads all values on all threads, as fast as the file gives them.
FiniteScan scan_finite(const StoredTensor& tensor, ThreadPool& pool);

/// Of the finite values, in double; the same whatever the number of threads. All 0 where there is none.
struct TensorStatistics {
  FiniteScan scan;
  double min = 0, max = 0, mean = 0, rms = 0;
};

/// @throws Unsupported for a dtype that is neither f32, f16, bf16 nor f64, nor of blocks
TensorStatistics tensor_statistics(const StoredTensor& tensor, ThreadPool& pool);

/// "[3, 17]": where the element of that index stands. @pre index < shape.elements()
std::string position_of(const Shape& shape, size_t index);

}  // namespace kilin

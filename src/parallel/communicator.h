// How the ranks of one model exchange values. A layer that shards its work calls this explicitly to sum its parts.
#pragma once

#include <cstddef>

#include "core/mat_view.h"

namespace kilin {

/// All ranks call the same methods in the same order. Every result is equal, byte for byte, on all ranks: contributions are
/// gathered and summed in order of rank, so that a router's tie can't make ranks choose differently.
class Communicator {
 public:
  virtual ~Communicator();
  virtual size_t rank() const = 0;
  virtual size_t size() const = 0;

  /// values = the sum over the ranks of their values.
  virtual void all_reduce(MatView<float> values) = 0;
};

/// One rank: this process alone.
class LocalCommunicator final : public Communicator {
 public:
  size_t rank() const override { return 0; }
  size_t size() const override { return 1; }
  void all_reduce(MatView<float> /*values*/) override {}
};

}  // namespace kilin

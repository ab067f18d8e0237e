// Which of a pool's places are free. What lies in the places is the pool's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kilin {

/// Hands out the numbers 0 .. capacity() - 1: those that came back first, then fresh ones in order. Costs memory for the
/// numbers that were ever handed out, not for the capacity. Not thread-safe.
class FreeIds {
 public:
  struct Taken {
    uint32_t id;
    bool fresh;  ///< handed out for the first time
  };

  /// @param what names the numbered things in the error. @throws ResourceExhausted for more than 32 bits can number
  FreeIds(size_t capacity, const char* what);

  size_t capacity() const { return capacity_; }
  size_t free() const { return capacity_ - next_fresh_ + returned_.size(); }

  /// Makes the next `count` calls of take(), and all of give_back() that follow, free of allocations and errors.
  /// @pre count <= free(). @throws bad_alloc, and then nothing has changed
  void prepare(size_t count);
  /// @pre prepared for
  Taken take() noexcept;
  void give_back(uint32_t id) noexcept { returned_.push_back(id); }

 private:
  size_t capacity_;
  size_t next_fresh_ = 0;           // nobody has had this one or those above
  std::vector<uint32_t> returned_;  // has room for all below next_fresh_
};

}  // namespace kilin

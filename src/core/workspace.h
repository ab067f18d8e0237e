// Scratch memory of a step: a bump arena whose frames give back all that they took. Sized once, at load, by what a dry run
// took.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "core/mat_view.h"
#include "core/reservation.h"
#include "core/saturating.h"

namespace kilin {

/// Not thread-safe: the thread that runs the step takes what the kernels' threads then share.
class Workspace {
 public:
  /// @param bytes the most that all open frames may hold together
  explicit Workspace(size_t bytes);

  /// Has no memory and no end: the addresses that it hands out must not be touched. For code of which only peak() is wanted.
  static Workspace without_memory() { return Workspace(); }

  /// Takes memory until it is destroyed. Frames nest like the calls that open them.
  class Frame {
   public:
    explicit Frame(Workspace& workspace) : workspace_(workspace), mark_(workspace.used_) {}
    ~Frame();
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    /// [rows, cols] of T, 64-byte aligned, rows contiguous. Its contents are unspecified: NaNs in debug builds.
    /// @throws ResourceExhausted if the plan made at load was too small: a fault of Kilin, not of its input.
    template <typename T = float>
    MatView<T> matrix(size_t rows, size_t cols) {
      return {array<T>(saturating_product(rows, cols)).data(), rows, cols};
    }
    template <typename T>
    std::span<T> array(size_t n) {
      static_assert(std::is_trivially_destructible_v<T>);
      return {static_cast<T*>(workspace_.take(saturating_product(n, sizeof(T)))), n};
    }

   private:
    Workspace& workspace_;
    size_t mark_;
  };

  size_t capacity() const { return capacity_; }
  size_t used() const { return used_; }
  size_t peak() const { return peak_; }  ///< The most that was ever in use, bytes.

  /// What `take(bytes)` costs.
  static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

 private:
  Workspace();
  void* take(size_t bytes);
  void poison(size_t begin, size_t end);

  Reservation memory_;  // empty without memory
  std::byte* begin_;
  size_t capacity_;
  size_t used_ = 0;
  size_t peak_ = 0;
};

}  // namespace kilin

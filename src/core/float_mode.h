// Subnormal results flush to zero, and subnormal operands count as zero, on every thread that computes: decays sink through the
// subnormals all the time, and a thread that treats them otherwise would give other bytes (and be slow).
#pragma once

#include <cstdint>

namespace kilin {

/// Sets flush-to-zero and denormals-are-zero on this thread while it lives, on x86-64 and AArch64. On other machines it does
/// nothing: bytes are then those of that machine's own treatment of subnormals.
class FloatModeGuard {
 public:
  FloatModeGuard();
  ~FloatModeGuard();
  FloatModeGuard(const FloatModeGuard&) = delete;
  FloatModeGuard& operator=(const FloatModeGuard&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace kilin

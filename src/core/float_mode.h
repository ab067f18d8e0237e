// Subnormal results flush to zero, and subnormal operands count as zero, on every thread that computes: decays sink through the
// subnormals all the time, and a thread that treats them otherwise would give other bytes (and be slow).
#pragma once

namespace kilin {

/// Sets flush-to-zero and denormals-are-zero on this thread while it lives.
class FloatModeGuard {
 public:
  FloatModeGuard();
  ~FloatModeGuard();
  FloatModeGuard(const FloatModeGuard&) = delete;
  FloatModeGuard& operator=(const FloatModeGuard&) = delete;

 private:
  unsigned saved_;
};

}  // namespace kilin

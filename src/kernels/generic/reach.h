#pragma once

#include <cstddef>

namespace kilin {

// Tells AddressSanitizer what a vector instruction reads or writes. g++ would check each plain access of more than 16 bytes by
// a slow call, which took most of a sanitised model's time, and would not check masked accesses at all. So vec_*.inl states
// itself how far an access reaches, which checks the first and the last byte, and then uses a masked access.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kReachIsChecked = true;
inline void reach(const void* p, size_t bytes) {
  if (bytes == 0) return;
  const auto* at = static_cast<const volatile char*>(p);
  static_cast<void>(at[0]);
  static_cast<void>(at[bytes - 1]);
}
#else
inline constexpr bool kReachIsChecked = false;
inline void reach(const void*, size_t) {}
#endif

}  // namespace kilin

#include "core/float_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kilin {

#if defined(__x86_64__)
FloatModeGuard::FloatModeGuard() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }  // FTZ is bit 15, DAZ bit 6
FloatModeGuard::~FloatModeGuard() { _mm_setcsr(saved_); }
#else
FloatModeGuard::FloatModeGuard() : saved_(0) {}
FloatModeGuard::~FloatModeGuard() = default;
#endif

}  // namespace kilin

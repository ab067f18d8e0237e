#include "core/float_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kilin {

namespace {

// The register that says how this thread's floating point works.
#if defined(__x86_64__)
constexpr uint64_t kFlush = 0x8040;  // MXCSR: FTZ is bit 15, DAZ bit 6
uint64_t control() { return _mm_getcsr(); }
void set_control(uint64_t value) { _mm_setcsr(static_cast<unsigned>(value)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlush = uint64_t{1} << 24;  // FPCR: FZ, for results and operands both
uint64_t control() {
  uint64_t value = 0;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
void set_control(uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
#else
constexpr uint64_t kFlush = 0;
uint64_t control() { return 0; }
void set_control(uint64_t) {}
#endif

}  // namespace

FloatModeGuard::FloatModeGuard() : saved_(control()) { set_control(saved_ | kFlush); }
FloatModeGuard::~FloatModeGuard() { set_control(saved_); }

}  // namespace kilin

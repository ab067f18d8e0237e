#include "support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> calls{0};

enum class Failure { None, Planned, Happened };
thread_local Failure failure = Failure::None;
thread_local size_t allowed_before_failure = 0;

bool fails_now() {
  if (failure != Failure::Planned || allowed_before_failure-- > 0) return false;
  failure = Failure::Happened;
  return true;
}

void* counted(size_t bytes, size_t alignment) {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (fails_now()) return nullptr;
  if (bytes == 0) bytes = 1;
  return alignment == 0 ? std::malloc(bytes) : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* counted_or_throw(size_t bytes, size_t alignment) {
  void* p = counted(bytes, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

namespace kilin::testing {

size_t allocations() { return calls.load(std::memory_order_relaxed); }

FailingAllocation::FailingAllocation(size_t allowed) {
  allowed_before_failure = allowed;
  failure = Failure::Planned;
}
FailingAllocation::~FailingAllocation() { failure = Failure::None; }
bool FailingAllocation::happened() const { return failure == Failure::Happened; }

}  // namespace kilin::testing

// Every form, since the sanitisers bring their own of each and refuse a mixture.
void* operator new(size_t bytes) { return counted_or_throw(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) { return counted_or_throw(bytes, static_cast<size_t>(alignment)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void* operator new[](size_t bytes) { return counted_or_throw(bytes, 0); }
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return counted_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes, 0); }
void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }

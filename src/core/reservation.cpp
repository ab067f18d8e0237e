#include "core/reservation.h"

#include <sys/mman.h>

#include <utility>

#include "core/error.h"

namespace kilin {

Reservation::Reservation(size_t bytes, std::string_view what) : bytes_(bytes) {
  if (bytes == 0) return;
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) raise(ErrorCode::ResourceExhausted, "cannot reserve {} bytes for the {}", bytes, what);
  data_ = static_cast<std::byte*>(p);
}

Reservation::~Reservation() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Reservation::Reservation(Reservation&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Reservation::ask_for_huge_pages() {
  if (data_ != nullptr) ::madvise(data_, bytes_, MADV_HUGEPAGE);  // refused, pages of 4 KB do as well
}

}  // namespace kilin

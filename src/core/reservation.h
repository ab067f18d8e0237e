// A stretch of address space that costs memory only where it was touched. Pools and the workspace are planned for the largest
// case at load and pay for what a run really uses; nothing is allocated in a step.
#pragma once

#include <cstddef>
#include <string_view>

namespace kilin {

class Reservation {
 public:
  Reservation() = default;
  /// Reserves `bytes` zeroed bytes, page-aligned. @param what names it in the error. @throws ResourceExhausted
  Reservation(size_t bytes, std::string_view what);
  ~Reservation();
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;

  /// Asks for pages of 2 MB where the system has them: a hint, for what is written once and read often. Without effect on what
  /// was touched before.
  void ask_for_huge_pages();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace kilin

// Which addresses are mapped from which file, for whoever must explain a SIGBUS: the bytes of a mapped file are gone, because
// the file was shortened or its disk failed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace kilin {

/// Enters a mapping while it lives. Thread-safe. A few thousand have room; those beyond are not found.
class MappedRange {
 public:
  MappedRange() = default;
  MappedRange(std::span<const std::byte> bytes, const std::filesystem::path& file);
  ~MappedRange();
  MappedRange(MappedRange&& other) noexcept;
  MappedRange& operator=(MappedRange&& other) noexcept;

 private:
  static constexpr size_t kNone = ~size_t{0};
  size_t slot_ = kNone;
};

/// The path of the file that an address was mapped from, or null. May be called in a signal handler; what it returns stays
/// valid while the mapping lives.
const char* file_mapped_at(const void* address);

/// From now on, reading a mapped file's byte that is no longer there writes a line that names the file to standard error and
/// ends the process with exit status 1. A SIGBUS for another reason is left to whoever handled it before. Programs call it; the
/// library never does, for signals are the process's.
void explain_lost_mapped_files();

}  // namespace kilin

// What this machine can do, as far as it matters here: instruction sets, threads that we may use, memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace kilin {

struct CpuInfo {
  std::string name;  // "AMD EPYC 9B45", or "unknown"
  bool fma = false, f16c = false, avx2 = false;
  bool avx_vnni = false;  // vpdpbusd on 256 bits without AVX-512
  bool avx512 = false;    // F, BW, CD, DQ and VL together
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  size_t logical_cpus = 1;  // in the machine

  static CpuInfo detect();
};

/// Threads that may really run at once: the least of the affinity mask and the cgroups' CPU quota (rounded up); at least 1.
/// @param root where proc/ and sys/ stand
size_t usable_threads(const std::filesystem::path& root = "/");

/// Bytes: of the machine or the cgroups' limit, whichever is less; and what of it is free to take now.
struct MemoryInfo {
  uint64_t total = 0;
  uint64_t available = 0;
  /// @param root where proc/ and sys/ stand
  static MemoryInfo detect(const std::filesystem::path& root = "/");
};

/// Peak resident set of this process so far, bytes.
uint64_t peak_resident_bytes();

}  // namespace kilin

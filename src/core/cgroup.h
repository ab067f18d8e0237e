// What the control groups that this process is in leave to it. A container's bounds stand there, and nowhere else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace kilin {

/// The tightest bounds of the process's group and of all groups above it, versions 1 and 2 alike: a group's own file says "max"
/// even where one above it has a bound.
struct CgroupLimits {
  std::optional<double> cpus;               ///< CPU time a second of time; absent without a quota
  std::optional<uint64_t> memory;           ///< bytes
  std::optional<uint64_t> memory_headroom;  ///< bytes until some group is full, file pages that can be dropped counted as free

  /// What is missing or unreadable sets no bound. @param root where proc/ and sys/ stand
  static CgroupLimits read(const std::filesystem::path& root = "/");
};

}  // namespace kilin

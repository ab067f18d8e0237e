// A folder that one writer at a time fills.
#pragma once

#include <filesystem>

namespace kilin {

/// Made if it is not there, and locked against other FolderLocks, of this process as of others, for as long as it lives or the
/// process does. Where a file system knows no locks, nobody is kept out.
class FolderLock {
 public:
  /// @throws Io if somebody else holds it, or it can't be made; InvalidArgument if it is no folder
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Whether it was made for this lock.
  bool is_new() const { return new_; }

 private:
  int descriptor_ = -1;
  bool new_ = false;
};

}  // namespace kilin

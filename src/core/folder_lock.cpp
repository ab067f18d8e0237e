#include "core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

// False if whoever had the lock before took the folder away with it.
bool has_name(int fd, const fs::path& folder) {
  struct stat own {
  }, named{};
  return ::fstat(fd, &own) == 0 && ::stat(folder.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
         own.st_ino == named.st_ino;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  constexpr int kMostTries = 1000;
  for (int tries = 0; tries < kMostTries; ++tries) {
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_directory(folder, error))
      raise(ErrorCode::InvalidArgument, "{}: is a file; expected a folder, new or empty", folder.string());
    new_ = fs::create_directories(folder, error);
    if (error) raise(ErrorCode::Io, "{}: {}", folder.string(), error.message());
    descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ < 0 && errno == ENOENT) continue;  // taken away again
    if (descriptor_ < 0) raise_errno(folder.string());
    const bool taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && has_name(descriptor_, folder)) return;
    ::close(descriptor_);
    if (taken) raise(ErrorCode::Io, "{}: another process is writing there; expected a folder of its own", folder.string());
  }
  raise(ErrorCode::Io, "{}: is taken away again and again", folder.string());
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace kilin

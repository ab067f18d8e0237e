#include "core/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace kilin {

namespace {

// A descriptor that closes itself.
struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

// Opens to read. Without O_NONBLOCK a named pipe in a model's folder would keep us here for ever.
int open_to_read(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) raise_errno(file.string());
  return fd;
}

FileStamp stamp_of_regular_file(int fd, const std::filesystem::path& file) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) raise_errno(file.string());
  if (!S_ISREG(info.st_mode)) raise(ErrorCode::Io, "{}: not a regular file", file.string());
  const auto nanoseconds = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return {.bytes = static_cast<uint64_t>(info.st_size),
          .inode = info.st_ino,
          .mtime_ns = nanoseconds(info.st_mtim),
          .ctime_ns = nanoseconds(info.st_ctim)};
}

// Large files of a repository that was cloned without Git LFS are a few lines of text in their place.
void refuse_git_lfs_pointer(std::string_view start, size_t size, const std::filesystem::path& file) {
  constexpr size_t kLargestPointer = 1024;  // by its specification
  if (size < kLargestPointer && start.starts_with("version https://git-lfs.github.com/spec/"))
    raise(ErrorCode::NotFound,
          "{}: is a Git LFS pointer of {} bytes, not the file itself; `git lfs pull` in its folder gets it", file.string(),
          size);
}

// Where the chain of symbolic links that `target` may be ends: at a file, or at a name that is free.
std::filesystem::path end_of_links(const std::filesystem::path& target) {
  std::filesystem::path path = target;
  constexpr int kMostLinks = 40;  // as the kernel's own bound
  std::error_code error;          // of a path that cannot be looked at: opening it will say why
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(path, error)); ++links) {
    if (links == kMostLinks) {
      errno = ELOOP;
      raise_errno(target.string());
    }
    const std::filesystem::path named = std::filesystem::read_symlink(path, error);
    if (error) raise(ErrorCode::Io, "{}: {}", target.string(), error.message());
    path = path.parent_path() / named;  // `named` alone if it is absolute
  }
  return path;
}

// A name in a folder is on disk when the folder is.
void flush_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == EACCES) return;  // one that we may write to and not read
    raise_errno(folder.string());
  }
  const Descriptor descriptor{fd};
  if (::fsync(fd) != 0 && errno != EINVAL) raise_errno(folder.string());  // EINVAL: this file system knows no such thing
}

constexpr std::string_view kPart = ".part-";  // between a target's name and the numbers of process and writer

// What the names of a target's temporary files begin with. A name as long as file systems take leaves no room for more.
std::string part_stem(const std::filesystem::path& target) {
  constexpr size_t kLongestName = 255, kNumbers = 22;
  return target.filename().string().substr(0, kLongestName - kNumbers - kPart.size()) + std::string(kPart);
}

std::filesystem::path folder_of(const std::filesystem::path& target) {
  return target.has_parent_path() ? target.parent_path() : ".";
}

// Why a file was not written: `asked` is its name for whoever asked, `target` where links lead. Nobody asked for the temporary
// file.
[[noreturn]] void raise_not_written(const std::filesystem::path& asked, const std::filesystem::path& target) {
  const int code = errno;
  std::error_code ignored;
  if (code == ENOENT && !std::filesystem::exists(folder_of(target), ignored))
    raise(ErrorCode::NotFound, "{}: can't be written, for there is no folder '{}'", asked.string(), folder_of(target).string());
  if (code == EFAULT)  // the kernel met what would be a SIGBUS here
    raise(ErrorCode::Io, "{}: not written, for a file that its bytes come from was shortened meanwhile, or can't be read",
          asked.string());
  errno = code;
  raise_errno(asked.string());
}

// A writer holds a lock on its temporary file for as long as it lives. True as well where locks are not known, and there
// nobody gets one.
bool lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

// False if somebody took the file for one left behind before it was locked.
bool has_name(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) != 0 || info.st_nlink > 0;
}

// Removes what writers of the target left that were killed, which may be as large as a model. What can't be looked at stays.
void remove_leftovers(const std::filesystem::path& target) {
  const std::string stem = part_stem(target);
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_of(target), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(stem) || name.size() == stem.size() ||
        name.find_first_not_of("0123456789-", stem.size()) != std::string::npos)
      continue;
    const int fd = ::open(at->path().c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    const Descriptor descriptor{fd};
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(at->path().c_str());
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  const Descriptor descriptor{open_to_read(file)};
  std::string text(stamp_of_regular_file(descriptor.fd, file).bytes, '\0');
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::read(descriptor.fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) raise_errno(file.string());
    if (n == 0) text.resize(done);  // it shrank meanwhile
    done += static_cast<size_t>(n);
  }
  refuse_git_lfs_pointer(text, text.size(), file);
  return text;
}

MappedFile::MappedFile(const std::filesystem::path& file) : path_(file) {
  const Descriptor descriptor{open_to_read(file)};
  *this = MappedFile(file, descriptor.fd);
  refuse_git_lfs_pointer({reinterpret_cast<const char*>(data_), size_}, size_, file);
}

// Shared: a private mapping need not show what is written later.
MappedFile::MappedFile(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), stamp_(stamp_of_regular_file(descriptor, path_)), size_(stamp_.bytes) {
  if (size_ == 0) return;
  void* p = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
  if (p == MAP_FAILED) raise_errno(path_.string());
  data_ = static_cast<const std::byte*>(p);
  range_ = MappedRange(bytes(), path_);
}

// Neighbours lose no more than a place in memory.
void MappedFile::release(std::span<const std::byte> part) const {
  advise(part, static_cast<size_t>(::sysconf(_SC_PAGESIZE)), MADV_DONTNEED);
}

// Refused, pages of 4 KB do as well. A huge page that is not advised as a whole is none.
void MappedFile::ask_for_huge_pages(std::span<const std::byte> part) const { advise(part, kHugePage, MADV_HUGEPAGE); }

// To all pages of the file that hold some of `part`.
void MappedFile::advise(std::span<const std::byte> part, size_t page, int advice) const {
  if (part.empty() || part.data() < data_ || part.data() + part.size() > data_ + size_) return;
  const auto offset = static_cast<size_t>(part.data() - data_);
  const size_t begin = offset / page * page, end = std::min((offset + part.size() + page - 1) / page * page, size_);
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, advice);
}

MappedFile::~MappedFile() {
  range_ = {};  // before another mapping can take its place
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      stamp_(other.stamp_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      range_(std::move(other.range_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(stamp_, other.stamp_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(range_, other.range_);
  return *this;
}

AtomicFile::AtomicFile(const std::filesystem::path& target) : asked_(target), target_(end_of_links(target)) {
  // Renaming over a device, such as /dev/null, would replace it by a plain file.
  struct stat info {};
  if (::stat(target_.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    raise(ErrorCode::InvalidArgument, "{}: not a regular file, so it cannot be replaced", asked_.string());
  remove_leftovers(target_);
  // A name of its own for each writer. One that is taken was left behind by a process of the same number, which died, where
  // locks are not known: in a container numbers come again soon.
  static std::atomic<unsigned> writers{0};
  constexpr int kMostTries = 10000;
  for (int tries = 0; descriptor_ < 0; ++tries) {
    const unsigned writer = writers.fetch_add(1, std::memory_order_relaxed);
    temporary_ = target_.parent_path() / fmt::format("{}{}-{}", part_stem(target_), ::getpid(), writer);
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || tries == kMostTries)) raise_not_written(asked_, target_);
    if (descriptor_ >= 0 && (!lock(descriptor_) || !has_name(descriptor_))) ::close(std::exchange(descriptor_, -1));
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) raise_not_written(asked_, target_);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void AtomicFile::resize(uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) raise_not_written(asked_, target_);
}

void AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) raise_not_written(asked_, target_);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

MappedFile AtomicFile::map() const { return {asked_, descriptor_}; }

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) raise_not_written(asked_, target_);
  // Closed after it has its name: until then the lock tells other writers that it is not left behind.
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) raise_not_written(asked_, target_);
  ::close(std::exchange(descriptor_, -1));
  flush_folder(folder_of(target_));
}

}  // namespace kilin

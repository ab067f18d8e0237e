#include "core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

size_t size_of_regular_file(int fd, const std::filesystem::path& file) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) raise_errno(file.string());
  if (!S_ISREG(info.st_mode)) raise(ErrorCode::Io, "{}: not a regular file", file.string());
  return static_cast<size_t>(info.st_size);
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  const Descriptor descriptor{open_to_read(file)};
  std::string text(size_of_regular_file(descriptor.fd, file), '\0');
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::read(descriptor.fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) raise_errno(file.string());
    if (n == 0) text.resize(done);  // it shrank meanwhile
    done += static_cast<size_t>(n);
  }
  return text;
}

MappedFile::MappedFile(const std::filesystem::path& file) : path_(file) {
  const Descriptor descriptor{open_to_read(file)};
  size_ = size_of_regular_file(descriptor.fd, file);
  if (size_ == 0) return;
  void* p = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor.fd, 0);
  if (p == MAP_FAILED) raise_errno(file.string());
  data_ = static_cast<const std::byte*>(p);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AtomicFile::AtomicFile(const std::filesystem::path& target) : target_(target) {
  // Renaming over a device, such as /dev/null, would replace it by a plain file.
  struct stat info {};
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    raise(ErrorCode::InvalidArgument, "{}: not a regular file, so it cannot be replaced", target.string());
  temporary_ = target;
  temporary_ += ".part-" + std::to_string(::getpid());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) raise_errno(temporary_.string());
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
    if (n < 0) raise_errno(temporary_.string());
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) raise_errno(temporary_.string());
  if (::close(std::exchange(descriptor_, -1)) != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary_.c_str());
    errno = code;
    raise_errno(target_.string());
  }
}

}  // namespace kilin

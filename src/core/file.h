// Files: read whole, mapped, or written so that a reader sees the old one or the new one and never a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/mapped_ranges.h"

namespace kilin {

/// The bytes of a file. @throws NotFound if it is not there, or a Git LFS pointer in its place; Io
std::string read_file(const std::filesystem::path& file);

/// What the system knows of a file without reading it. Each change of its bytes changes the ctime, which no program can set; a
/// file that another was moved or copied over has another inode or ctime.
struct FileStamp {
  uint64_t bytes = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

/// A page as large as one entry of the table above the page tables maps.
inline constexpr size_t kHugePage = size_t{2} << 20;

/// A file's bytes, mapped to read. They stay valid while it lives. Reading those of a file that was shortened meanwhile, or
/// can't be read any more, is a SIGBUS, as with every mapped file: explain_lost_mapped_files() says which file it was.
class MappedFile {
 public:
  /// @throws as read_file
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  /// As it was when the file was mapped, before a byte of it was read.
  const FileStamp& stamp() const { return stamp_; }

  /// Takes the pages that hold `part` out of this process's memory: they are read from the file again when somebody looks at
  /// them. What does not lie within bytes() is left alone.
  void release(std::span<const std::byte> part) const;

  /// Asks for huge pages where `part` lies, if the system has them for files: a hint, for what is read whole and often. From
  /// disk it then comes 2 MB or more at a time. What does not lie within bytes() is left alone.
  void ask_for_huge_pages(std::span<const std::byte> part) const;

 private:
  friend class AtomicFile;
  MappedFile(std::filesystem::path path, int descriptor);
  void advise(std::span<const std::byte> part, size_t page, int advice) const;

  std::filesystem::path path_;
  FileStamp stamp_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappedRange range_;
};

/// Writes to a temporary file beside the target, which commit() renames into place; without commit() the target stays as it
/// was. A target that is a symbolic link stays one: what it names is replaced, or made if it is not there. Several writers of
/// one target, in one process or several, do not disturb each other: the last to commit wins. The file's permissions are those
/// that the umask leaves any new file. Temporary files of writers that were killed are removed by the next one. Errors name the
/// target as it was asked for.
class AtomicFile {
 public:
  /// @throws InvalidArgument if the target is a folder, a device or a pipe; NotFound, Io
  explicit AtomicFile(const std::filesystem::path& target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. @throws Io (a full disk among others)
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

  /// Makes the file so long; what nobody writes reads as zeros. @throws Io
  void resize(uint64_t bytes);
  /// Writes at a place of its own, without regard to what write() appended. Thread-safe for different places. @throws as write
  void write_at(uint64_t offset, std::span<const std::byte> bytes) const;
  /// The file as it stands, and as it will be: what is written within its present length shows, and commit() changes nothing
  /// about it. @throws Io
  MappedFile map() const;

  /// Flushes to disk, renames, and flushes the folder: when it returns, the new file stays even if the machine stops.
  /// @throws Io, and then the target is what it was, unless only the folder could not be flushed (the message names the folder)
  void commit();

 private:
  std::filesystem::path asked_;   // the target by its name in messages
  std::filesystem::path target_;  // where links lead
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}  // namespace kilin

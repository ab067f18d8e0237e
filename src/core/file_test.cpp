#include "core/file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;

void write_plain(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

template <typename F>
void expect_error(ErrorCode code, const std::string& part, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(File, IsReadAndMappedWholeWithAllItsBytes) {
  const testing::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 10000; ++i) text += static_cast<char>(i * 31);
  for (const std::string& content : {std::string(), std::string("x"), text}) {
    write_plain(folder / "file", content);
    EXPECT_EQ(read_file(folder / "file"), content);
    EXPECT_EQ(text_of(MappedFile(folder / "file")), content);
  }
}

TEST(File, ThatIsNotThereOrNoFileIsAnErrorWithItsName) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorCode::NotFound, "no-such-file", [&] { read_file(folder / "no-such-file"); });
  expect_error(ErrorCode::NotFound, "no-such-file", [&] { MappedFile(folder / "no-such-file"); });
  expect_error(ErrorCode::Io, "not a regular file", [&] { read_file(folder.path()); });
  expect_error(ErrorCode::Io, "not a regular file", [&] { MappedFile{folder.path()}; });
  expect_error(ErrorCode::Io, "not a regular file", [&] { read_file(folder / "pipe"); });
  expect_error(ErrorCode::Io, "not a regular file", [&] { MappedFile(folder / "pipe"); });
}

TEST(MappedFile, KeepsItsBytesWhenMovedAndWhenTheFileIsRemoved) {
  const testing::TemporaryFolder folder;
  write_plain(folder / "a", "first");
  write_plain(folder / "b", "second");
  MappedFile a(folder / "a");
  MappedFile b(folder / "b");
  b = std::move(a);
  fs::remove(folder / "a");
  EXPECT_EQ(text_of(b), "first");
  EXPECT_EQ(b.path(), folder / "a");
  const MappedFile c = std::move(b);
  EXPECT_EQ(text_of(c), "first");
}

TEST(AtomicFile, LeavesTheOldFileUntilCommit) {
  const testing::TemporaryFolder folder;
  write_plain(folder / "target", "old");
  {
    AtomicFile file(folder / "target");
    file.write("half of the n");
    EXPECT_EQ(read_file(folder / "target"), "old");
  }
  EXPECT_EQ(read_file(folder / "target"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << "nothing is left beside it";
  {
    AtomicFile file(folder / "target");
    file.write("the ");
    file.write("new one");
    file.commit();
    EXPECT_EQ(read_file(folder / "target"), "the new one");
  }
  EXPECT_EQ(read_file(folder / "target"), "the new one");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(AtomicFile, MayBeEmptyAndNew) {
  const testing::TemporaryFolder folder;
  AtomicFile file(folder / "target");
  file.commit();
  EXPECT_EQ(read_file(folder / "target"), "");
}

TEST(AtomicFile, HasThePermissionsOfAnyNewFile) {
  const testing::TemporaryFolder folder;
  for (const mode_t mask : {mode_t{0002}, mode_t{0022}, mode_t{0077}}) {
    const mode_t before = ::umask(mask);
    AtomicFile file(folder / "atomic");
    file.commit();
    ::umask(before);
    EXPECT_EQ(static_cast<mode_t>(fs::status(folder / "atomic").permissions()), 0666 & ~mask);
  }
}

TEST(AtomicFile, MayBeChangedWhereItWasWritten) {
  const testing::TemporaryFolder folder;
  AtomicFile file(folder / "target");
  file.write("....and more");
  file.write_at(0, std::as_bytes(std::span("HEAD", 4)));
  file.write("!");
  file.commit();
  EXPECT_EQ(read_file(folder / "target"), "HEADand more!");
}

TEST(AtomicFile, ReplacesNoDeviceFolderOrPipe) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorCode::InvalidArgument, "/dev/null", [] { AtomicFile{"/dev/null"}; });
  expect_error(ErrorCode::InvalidArgument, "pipe", [&] { AtomicFile(folder / "pipe"); });
  expect_error(ErrorCode::InvalidArgument, "not a regular file", [&] { AtomicFile{folder.path()}; });
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(AtomicFile, WritersOfOneTargetDoNotDisturbEachOther) {
  const testing::TemporaryFolder folder;
  {
    AtomicFile first(folder / "target"), second(folder / "target"), third(folder / "target");
    first.write("the fir");
    second.write("the second");
    third.write("the third");
    first.write("st");
    first.commit();
    EXPECT_EQ(read_file(folder / "target"), "the first");
    second.commit();
    EXPECT_EQ(read_file(folder / "target"), "the second");
  }
  EXPECT_EQ(read_file(folder / "target"), "the second") << "the third was not committed";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(AtomicFile, WritesNoFileThatSomebodyLeftUnderItsTemporaryName) {
  const testing::TemporaryFolder folder;
  write_plain(folder / "precious", "precious");
  const auto temporary_name = [&] {
    const AtomicFile file(folder / "target");
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (entry.path().filename() != "precious") return entry.path().string();
    return std::string();
  };
  const std::string name = temporary_name();
  const size_t dash = name.rfind('-');
  ASSERT_NE(dash, std::string::npos) << name;
  const auto numbered = [&](unsigned ahead) {
    return name.substr(0, dash + 1) + std::to_string(std::stoul(name.substr(dash + 1)) + ahead);
  };
  write_plain(numbered(1), "left behind");
  fs::create_symlink("precious", numbered(2));
  fs::create_symlink("nothing", numbered(3));
  AtomicFile file(folder / "target");
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(folder / "target"), "new");
  EXPECT_EQ(read_file(folder / "precious"), "precious");
  EXPECT_FALSE(fs::exists(folder / "nothing"));
}

TEST(AtomicFile, RemovesWhatKilledWritersLeftAndNothingElse) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> others = {"other.part-1-0", "target.part-", "target.part-x-0", "target", "target.part-3-0"};
  for (const std::string& name : others)
    if (name != "target.part-3-0") write_plain(folder / name, "old");
  fs::create_directory(folder / "target.part-3-0");
  write_plain(folder / "target.part-999999-0", "left behind");
  AtomicFile alive(folder / "target");
  EXPECT_FALSE(fs::exists(folder / "target.part-999999-0"));
  alive.write("new");
  AtomicFile second(folder / "target");  // takes the first for none
  alive.commit();
  EXPECT_EQ(read_file(folder / "target"), "new");
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder / name)) << name;
}

TEST(AtomicFile, ThroughALinkReplacesWhatTheLinkNames) {
  const testing::TemporaryFolder folder;
  fs::create_directory(folder / "elsewhere");
  write_plain(folder / "elsewhere/file", "old");
  fs::create_symlink("elsewhere/file", folder / "near");
  fs::create_symlink(folder / "near", folder / "far");
  fs::create_symlink("elsewhere/new", folder / "dangling");
  for (const char* link : {"near", "far", "dangling"}) {
    AtomicFile file(folder / link);
    file.write(link);
    file.commit();
    EXPECT_TRUE(fs::is_symlink(folder / link));
    EXPECT_EQ(read_file(folder / link), link);
  }
  EXPECT_EQ(read_file(folder / "elsewhere/file"), "far");
  EXPECT_EQ(read_file(folder / "elsewhere/new"), "dangling");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "elsewhere"), {}), 2);
}

TEST(AtomicFile, ThroughALinkThatEndsNowhereOrAtNoFileIsAnError) {
  const testing::TemporaryFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  fs::create_symlink("missing/file", folder / "c");
  fs::create_symlink("/dev/null", folder / "d");
  fs::create_symlink(".", folder / "e");
  expect_error(ErrorCode::Io, "symbolic links", [&] { AtomicFile(folder / "a"); });
  expect_error(ErrorCode::NotFound, "missing", [&] { AtomicFile(folder / "c"); });
  expect_error(ErrorCode::InvalidArgument, "not a regular file", [&] { AtomicFile(folder / "d"); });
  expect_error(ErrorCode::InvalidArgument, "not a regular file", [&] { AtomicFile(folder / "e"); });
}

TEST(AtomicFile, MayBeNamedWithoutAFolder) {
  const testing::TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  AtomicFile file("target");
  file.write("here");
  file.commit();
  fs::current_path(before);
  EXPECT_EQ(read_file(folder / "target"), "here");
}

TEST(AtomicFile, InAFolderThatIsNotThereIsAnError) {
  const testing::TemporaryFolder folder;
  expect_error(ErrorCode::NotFound, "missing", [&] { AtomicFile(folder / "missing/target"); });
}

TEST(AtomicFile, IsWrittenAtAnyPlaceAndItsMapShowsIt) {
  const testing::TemporaryFolder folder;
  AtomicFile file(folder / "target");
  file.resize(10000);
  const MappedFile map = file.map();
  EXPECT_EQ(text_of(map), std::string(10000, '\0'));
  file.write_at(5000, std::as_bytes(std::span("later", 5)));
  file.write_at(0, std::as_bytes(std::span("early", 5)));
  std::string expected(10000, '\0');
  expected.replace(0, 5, "early").replace(5000, 5, "later");
  EXPECT_EQ(text_of(map), expected);
  file.commit();
  EXPECT_EQ(text_of(map), expected);
  EXPECT_EQ(read_file(folder / "target"), expected);
}

TEST(AtomicFile, LongerThanAFileSystemTakesIsAnErrorWithItsName) {
  const testing::TemporaryFolder folder;
  AtomicFile file(folder / "target");
  expect_error(ErrorCode::Io, "target", [&] { file.resize(uint64_t{1} << 62); });  // beyond what any file system takes
}

TEST(File, AGitLfsPointerIsNotTheFileItself) {
  const testing::TemporaryFolder folder;
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') + "\nsize 123\n";
  write_plain(folder / "file", pointer);
  expect_error(ErrorCode::NotFound, "file: is a Git LFS pointer", [&] { read_file(folder / "file"); });
  expect_error(ErrorCode::NotFound, "file: is a Git LFS pointer", [&] { MappedFile(folder / "file"); });
  write_plain(folder / "file", pointer + std::string(1024, 'x'));  // a text about pointers
  EXPECT_EQ(read_file(folder / "file").size(), pointer.size() + 1024);
  write_plain(folder / "file", " " + pointer);
  EXPECT_EQ(text_of(MappedFile(folder / "file")), " " + pointer);
}

TEST(AtomicFile, NamesInErrorsWhatWasAskedForAndNeverItsTemporaryFile) {
  const testing::TemporaryFolder folder;
  fs::create_directory(folder / "elsewhere");
  fs::create_symlink("elsewhere/file", folder / "link");
  fs::create_symlink("gone/file", folder / "dangling");
  const auto end_of = [](const fs::path& file) {
    return fs::is_symlink(file) ? file.parent_path() / fs::read_symlink(file) : file;
  };
  const auto message_of = [](const auto& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  void* const closed = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(closed, MAP_FAILED);
  const std::span unreadable(static_cast<const std::byte*>(closed), 4096);
  for (const char* name : {"file", "link"}) {
    AtomicFile file(folder / name);
    for (const std::string& message :
         {message_of([&] { file.resize(uint64_t{1} << 62); }), message_of([&] { file.write(unreadable); }),
          message_of([&] { file.write_at(0, unreadable); }), message_of([&] {
            fs::create_directory(end_of(folder / name));
            file.commit();
          })})
      EXPECT_TRUE(message.starts_with((folder / name).string() + ": ") && message.find("part-") == std::string::npos)
          << message;
  }
  ::munmap(closed, 4096);
  EXPECT_EQ(
      message_of([&] { AtomicFile(folder / "gone/file"); }),
      (folder / "gone/file").string() + ": can't be written, for there is no folder '" + (folder / "gone").string() + "'");
  EXPECT_TRUE(message_of([&] { AtomicFile(folder / "dangling"); }).starts_with((folder / "dangling").string() + ": "));
}

TEST(AtomicFile, TakesANameAsLongAsTheFileSystemDoes) {
  const testing::TemporaryFolder folder;
  const std::string longest(255, 'n');
  AtomicFile file(folder / longest);
  file.write("text");
  file.commit();
  EXPECT_EQ(read_file(folder / longest), "text");
}

TEST(MappedFile, ReleasedPagesReadAsBefore) {
  const testing::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += static_cast<char>(i * 31);
  write_plain(folder / "file", text);
  const MappedFile map(folder / "file");
  EXPECT_EQ(text_of(map), text);
  map.release(map.bytes().subspan(5000, 60000));
  EXPECT_EQ(text_of(map), text);
  map.release(map.bytes());
  map.release({});
  EXPECT_EQ(text_of(map), text);
}

TEST(MappedFile, MemoryThatIsNotItsOwnIsNotReleased) {
  const testing::TemporaryFolder folder;
  write_plain(folder / "file", "text");
  const std::vector<std::byte> other(1 << 16, std::byte{7});
  MappedFile(folder / "file").release(other);
  EXPECT_EQ(std::ranges::count(other, std::byte{7}), 1 << 16);
}

TEST(MappedFile, ReadsTheSameWhereHugePagesWereAskedFor) {
  const testing::TemporaryFolder folder;
  std::string text;
  for (size_t i = 0; i < 2 * kHugePage + 5000; ++i) text += static_cast<char>(i * 31 >> 8);
  write_plain(folder / "file", text);
  const MappedFile map(folder / "file");
  map.ask_for_huge_pages(map.bytes().subspan(kHugePage - 1, 2));
  EXPECT_TRUE(text_of(map) == text);
  map.ask_for_huge_pages(map.bytes());
  map.release(map.bytes().subspan(5000, kHugePage));
  map.ask_for_huge_pages({});
  map.ask_for_huge_pages(std::as_bytes(std::span(text)));
  EXPECT_TRUE(text_of(map) == text);
  write_plain(folder / "empty", "");
  const MappedFile empty(folder / "empty");
  empty.ask_for_huge_pages(empty.bytes());
}

}  // namespace
}  // namespace kilin

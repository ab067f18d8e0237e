#include "core/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

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

TEST(AtomicFile, ReplacesNoDeviceFolderOrPipe) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorCode::InvalidArgument, "/dev/null", [] { AtomicFile{"/dev/null"}; });
  expect_error(ErrorCode::InvalidArgument, "pipe", [&] { AtomicFile(folder / "pipe"); });
  expect_error(ErrorCode::InvalidArgument, "not a regular file", [&] { AtomicFile{folder.path()}; });
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(AtomicFile, InAFolderThatIsNotThereIsAnError) {
  const testing::TemporaryFolder folder;
  expect_error(ErrorCode::NotFound, "missing", [&] { AtomicFile(folder / "missing/target"); });
}

}  // namespace
}  // namespace kilin

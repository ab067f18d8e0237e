#include "checkpoint/gguf_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "support/gguf.h"
#include "support/golden.h"

namespace kilin {
namespace {

using testing::Bytes;
using testing::GgufBuilder;
using testing::TemporaryFolder;

GgufBuilder part(uint16_t number, uint16_t count, int32_t tensors) {
  return GgufBuilder()
      .raw_key("split.no", 2, Bytes().add(number))
      .raw_key("split.count", 2, Bytes().add(count))
      .key("split.tensors.count", tensors);
}

std::string part_name(int number, int count) { return fmt::format("m-{:05}-of-{:05}.gguf", number, count); }

// Three parts with a tensor each; the first has the model's keys.
void write_parts(const TemporaryFolder& folder) {
  part(0, 3, 3).key("general.name", "one").tensor("c", {1}, {3}).write(folder / part_name(1, 3));
  part(1, 3, 3).tensor("a", {1}, {1}).write(folder / part_name(2, 3));
  part(2, 3, 3).key("general.name", "one").tensor("b", {1}, {2}).write(folder / part_name(3, 3));
}

void expect_refused(const std::filesystem::path& file, ErrorCode code, const std::string& words) {
  try {
    GgufFile::open(file);
    ADD_FAILURE() << "not refused; expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what() << "\nexpected: " << words;
  }
}

TEST(GgufFile, IsAStoreOfItsTensors) {
  const TemporaryFolder folder;
  GgufBuilder().key("k", true).tensor("b", {2, 3}, {0, 1, 2, 3, 4, 5}).tensor("a", {1}, {7}).write(folder / "model.bin");
  const auto file = GgufFile::open(folder / "model.bin");
  EXPECT_EQ(file->names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(file->require("b").shape, (Shape{3, 2}));
  EXPECT_FALSE(file->find("c"));
  EXPECT_EQ(file->source(), (folder / "model.bin").string());
  EXPECT_NE(file->metadata().find("k"), nullptr);
  EXPECT_THROW(GgufFile::open(folder / "other"), Error);
}

TEST(GgufFile, IsToldByItsFirstBytes) {
  const TemporaryFolder folder;
  GgufBuilder().write(folder / "model");
  std::ofstream(folder / "other.gguf") << "GGU";
  EXPECT_TRUE(is_gguf(folder / "model"));
  EXPECT_FALSE(is_gguf(folder / "other.gguf"));
  EXPECT_FALSE(is_gguf(folder / "nowhere"));
  EXPECT_FALSE(is_gguf(folder.path()));
}

TEST(GgufFile, AnyPartOfASplitModelStandsForTheWhole) {
  const TemporaryFolder folder;
  write_parts(folder);
  for (int number = 1; number <= 3; ++number) {
    const auto file = GgufFile::open(folder / part_name(number, 3));
    EXPECT_EQ(file->names(), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(file->require("a").file, (folder / part_name(2, 3)).string());
    EXPECT_NE(file->metadata().find("general.name"), nullptr);
    EXPECT_EQ(file->files().size(), 3u);
  }
}

TEST(GgufFile, MissingPartsAreNamed) {
  const TemporaryFolder folder;
  write_parts(folder);
  std::filesystem::remove(folder / part_name(1, 3));
  std::filesystem::remove(folder / part_name(3, 3));
  expect_refused(folder / part_name(2, 3), ErrorCode::NotFound, "2 are missing beside it: m-00001-of-00003.gguf, m-00003-of");
}

TEST(GgufFile, PartsThatContradictEachOtherAreRefused) {
  const TemporaryFolder folder;
  const auto first = folder / part_name(1, 3), last = folder / part_name(3, 3);
  write_parts(folder);
  part(2, 3, 3).key("general.name", "two").tensor("b", {1}, {2}).write(last);
  expect_refused(first, ErrorCode::Corrupt, "parts of one model");
  part(1, 3, 3).tensor("b", {1}, {2}).write(last);
  expect_refused(first, ErrorCode::Corrupt, "is no part 3 of 3");
  part(2, 3, 4).tensor("b", {1}, {2}).write(last);
  expect_refused(first, ErrorCode::Corrupt, "is no part 3 of 3 with 3 tensors");
  part(2, 3, 3).tensor("a", {1}, {2}).write(last);
  expect_refused(first, ErrorCode::Corrupt, "tensor 'a' stands in");
  part(2, 3, 3).write(last);
  expect_refused(first, ErrorCode::Corrupt, "hold 2 tensors; expected 3");
  GgufBuilder().tensor("b", {1}, {2}).write(last);
  expect_refused(first, ErrorCode::Corrupt, "is no part 3 of 3");
  std::filesystem::rename(first, folder / "renamed.gguf");
  expect_refused(folder / "renamed.gguf", ErrorCode::Corrupt, "'-00001-of-00003.gguf'");
  part(3, 3, 3).write(first);
  expect_refused(first, ErrorCode::Corrupt, "'split.no' is no whole number in 0..2");
}

TEST(GgufFile, OnePartOfOneIsAWholeModel) {
  const TemporaryFolder folder;
  part(0, 1, 1).tensor("a", {1}, {1}).write(folder / "any.gguf");
  EXPECT_EQ(GgufFile::open(folder / "any.gguf")->names().size(), 1u);
}

}  // namespace
}  // namespace kilin

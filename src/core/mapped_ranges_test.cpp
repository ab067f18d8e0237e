#include "core/mapped_ranges.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/file.h"
#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

constexpr size_t kBytes = size_t{1} << 16;

void write_zeros(const fs::path& file) { std::ofstream(file, std::ios::binary) << std::string(kBytes, '\0'); }

TEST(MappedRanges, AnAddressIsFoundWhileItsFileIsMapped) {
  const TemporaryFolder folder;
  write_zeros(folder / "a");
  write_zeros(folder / "b");
  MappedFile a(folder / "a");
  const std::byte* first = a.bytes().data();
  {
    const MappedFile b(folder / "b");
    EXPECT_EQ(file_mapped_at(&b.bytes().back()), (folder / "b").string());
  }
  EXPECT_EQ(file_mapped_at(first), (folder / "a").string());
  EXPECT_EQ(file_mapped_at(first + kBytes - 1), (folder / "a").string());
  const auto moved = std::make_unique<MappedFile>(std::move(a));
  EXPECT_EQ(file_mapped_at(first), (folder / "a").string());
  EXPECT_EQ(file_mapped_at(&folder), nullptr);
  EXPECT_EQ(file_mapped_at(nullptr), nullptr);
}

TEST(MappedRanges, MoreThanHaveRoomAreMappedAllTheSame) {
  const TemporaryFolder folder;
  write_zeros(folder / "a");
  std::vector<MappedRange> ranges;
  const std::vector<std::byte> bytes(8);
  for (int i = 0; i < 5000; ++i) ranges.emplace_back(bytes, "some");
  const MappedFile a(folder / "a");
  EXPECT_EQ(a.bytes().front(), std::byte{0});
  EXPECT_EQ(file_mapped_at(&a.bytes().front()), nullptr);
  ranges.clear();
  const MappedFile again(folder / "a");
  EXPECT_EQ(file_mapped_at(&again.bytes().front()), (folder / "a").string());
}

TEST(MappedRangesDeathTest, AFileThatIsShortenedWhileItIsReadIsNamed) {
  const TemporaryFolder folder;
  write_zeros(folder / "weights");
  const auto read_what_is_gone = [&] {
    explain_lost_mapped_files();
    const MappedFile map(folder / "weights");
    fs::resize_file(folder / "weights", 0);
    const volatile auto* bytes = map.bytes().data();
    static_cast<void>(std::to_integer<int>(bytes[kBytes / 2]));
  };
  EXPECT_EXIT(read_what_is_gone(), ::testing::ExitedWithCode(1), "kilin: .*/weights: bytes of the file are gone");
}

TEST(MappedRangesDeathTest, AnotherBusErrorIsLeftToWhoeverHandledItBefore) {
  const auto raise_another = [] {
    std::signal(SIGBUS, [](int) { std::_Exit(7); });
    explain_lost_mapped_files();
    std::raise(SIGBUS);
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(raise_another(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace kilin

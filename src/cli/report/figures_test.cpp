#include "cli/report/figures.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"

namespace kilin::cli {
namespace {

TEST(Figures, ThousandsHaveCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(49'122'681'728), "49,122,681,728");
  EXPECT_EQ(with_commas(100'000), "100,000");
}

TEST(Figures, BytesHaveAUnitThatFits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(44'892'160), "42.8 MiB");
  EXPECT_EQ(human_bytes(98'245'528'576), "91.5 GiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(Figures, SizesAreReadWithTheirUnitAndNothingElseIs) {
  EXPECT_EQ(parse_bytes("--shard-size", "5GB"), 5'000'000'000u);
  EXPECT_EQ(parse_bytes("--shard-size", "500MB"), 500'000'000u);
  EXPECT_EQ(parse_bytes("--shard-size", "7KB"), 7'000u);
  EXPECT_EQ(parse_bytes("--shard-size", "123"), 123u);
  for (const char* bad :
       {"", "GB", "5 GB", "-5GB", "5G", "1.5GB", "0", "0GB", "99999999999999999999", "99999999999999GB", "5GBGB"})
    EXPECT_THROW(parse_bytes("--shard-size", bad), Error) << bad;
}

}  // namespace
}  // namespace kilin::cli

#include "core/storage_format.h"

#include <gtest/gtest.h>

namespace kilin {
namespace {

TEST(StorageFormat, NamesAreReadBack) {
  for (const BlockFormat format : kBlockFormats) EXPECT_EQ(find_block_format(to_string(format)), format) << to_string(format);
  EXPECT_EQ(find_block_format("q9_9"), std::nullopt);
}

TEST(StorageFormat, BytesAreThoseOfWholeBlocks) {
  EXPECT_EQ(StorageFormat(DType::bf16).bytes_of(10), 20u);
  EXPECT_EQ(StorageFormat(DType::bf16).block_elements(), 1u);
  EXPECT_EQ(StorageFormat(BlockFormat::q4_0).bytes_of(64), 36u);
  EXPECT_EQ(StorageFormat(BlockFormat::q4_k).bytes_of(2304), 9u * 144);
  EXPECT_EQ(StorageFormat(BlockFormat::q6_k).block_elements(), 256u);
}

TEST(StorageFormat, IsEqualOnlyToItself) {
  EXPECT_EQ(StorageFormat(BlockFormat::q4_0), BlockFormat::q4_0);
  EXPECT_NE(StorageFormat(BlockFormat::q4_0), StorageFormat(DType::f32));
  EXPECT_NE(StorageFormat(DType::f32), StorageFormat(DType::bf16));
  EXPECT_EQ(to_string(StorageFormat(BlockFormat::iq4_xs)), "iq4_xs");
  EXPECT_EQ(to_string(StorageFormat(DType::f16)), "f16");
}

}  // namespace
}  // namespace kilin

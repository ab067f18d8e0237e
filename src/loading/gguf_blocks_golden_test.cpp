// Rows that llama.cpp wrote, in every block format, against their values as a program in NumPy computes them from the formats'
// description (tools/make_golden_blocks.py). It stands in the repository alone, so no test is skipped.
#include <gtest/gtest.h>

#include <set>

#include "checkpoint/gguf_file.h"
#include "kernels/quant/blocks.h"
#include "support/compare.h"
#include "support/golden.h"

namespace kilin {
namespace {

class GgufBlocksGolden : public ::testing::TestWithParam<BlockFormat> {
 protected:
  std::shared_ptr<const GgufFile> file = GgufFile::open(testing::in_repository("tests/golden/gguf/blocks.gguf"));
  StoredTensor blocks = file->require(to_string(GetParam()));
  StoredTensor values = file->require(std::string(to_string(GetParam())) + ".values");
};
INSTANTIATE_TEST_SUITE_P(Rows, GgufBlocksGolden, ::testing::ValuesIn(kBlockFormats),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST_P(GgufBlocksGolden, AreDequantizedBitForBit) {
  ASSERT_EQ(blocks.format, StorageFormat(GetParam()));
  ASSERT_EQ(values.format, StorageFormat(DType::f32));
  ASSERT_EQ(blocks.shape, values.shape);
  std::vector<float> row(blocks.elements());
  dequantize_row(GetParam(), blocks.bytes.data(), row.size(), row.data());
  EXPECT_TRUE(testing::same_bytes(std::as_bytes(std::span(row)), values.bytes));
}

TEST_P(GgufBlocksGolden, HoldManyDifferentValues) {
  const auto* first = reinterpret_cast<const float*>(values.bytes.data());
  EXPECT_GE(std::set<float>(first, first + values.elements()).size(), 16u);
}

}  // namespace
}  // namespace kilin

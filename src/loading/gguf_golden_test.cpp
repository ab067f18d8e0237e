// Golden files of every block format: fp32 arithmetic on their weights, packed into panels, must give the logits that llama.cpp
// gives with its own dequantised copy in fp32.
#include <gtest/gtest.h>

#include "checkpoint/gguf_file.h"
#include "checkpoint/npy.h"
#include "gguf/config.h"
#include "gguf/names.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/model_runner.h"

namespace kilin {
namespace {

class GgufGolden : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Mini, GgufGolden,
                         ::testing::Values("bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k_m", "q4_k_m", "q5_k_m",
                                           "q6_k", "iq4_nl", "iq4_xs", "mxfp4"),
                         [](const auto& test) { return test.param; });

TEST_P(GgufGolden, PanelsGiveTheExactLogits) {
  GOLDEN_OR_SKIP(file, "gguf/mini-" + GetParam() + ".gguf");
  GOLDEN_OR_SKIP(exact, "gguf/exact-" + GetParam() + ".npy");
  GOLDEN_OR_SKIP(prompt, "gguf/ids.npy");
  const auto gguf = GgufFile::open(file);
  const ModelConfig config = read_gguf_config(gguf->metadata(), *gguf);
  testing::ModelRunner runner(gguf_with_published_names(gguf, config), config);
  const Tensor ids = read_npy(prompt), logits = read_npy(exact);
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < ids.elements(); ++i)
    tokens.push_back(ids.dtype() == DType::i64 ? static_cast<int32_t>(ids.as<int64_t>()[i]) : ids.as<int32_t>()[i]);
  const std::vector<float> ours = runner.prefill(tokens);
  EXPECT_CLOSE_TO_MAX(ours, std::span<const float>(logits.as<float>(), logits.elements()), 1e-5);
}

}  // namespace
}  // namespace kilin

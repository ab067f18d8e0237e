// GGUF files through the whole engine: loaded as they lie, without anything beside them.
#include <gtest/gtest.h>

#include "checkpoint/npy.h"
#include "core/error.h"
#include "engine/engine.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/mini_gguf.h"

namespace kilin {
namespace {

// exact-*.npy: llama.cpp's logits with the file's weights dequantised, in fp32.
class GgufEngine : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Mini, GgufEngine, ::testing::Values("bf16", "q2_k"), [](const auto& test) { return test.param; });

TEST_P(GgufEngine, GivesTheExactLogitsOfAGoldenFile) {
  GOLDEN_OR_SKIP(file, "gguf/mini-" + GetParam() + ".gguf");
  GOLDEN_OR_SKIP(exact, "gguf/exact-" + GetParam() + ".npy");
  GOLDEN_OR_SKIP(prompt, "gguf/ids.npy");
  const Tensor ids = read_npy(prompt), expected = read_npy(exact);
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < ids.elements(); ++i)
    tokens.push_back(ids.dtype() == DType::i64 ? static_cast<int32_t>(ids.as<int64_t>()[i]) : ids.as<int32_t>()[i]);
  EngineOptions options;
  options.activations = ActivationType::f32;
  options.kv_type = KvType::f32;
  options.pool_tokens = tokens.size();
  Engine engine(LoadedModel::load(file), options);
  std::vector<float> logits;
  engine.logits(tokens, [&](size_t, MatView<const float> rows) {
    for (size_t r = 0; r < rows.rows(); ++r) logits.insert(logits.end(), rows[r].begin(), rows[r].end());
  });
  EXPECT_CLOSE_TO_MAX(logits, std::span<const float>(expected.as<float>(), expected.elements()), 1e-5);
}

// Converters put [EOS] in the place of <|im_end|>.
TEST(GgufModel, StopsOnAllEndsOfTheChatFormatWhateverItsKeyNames) {
  const testing::TemporaryFolder folder;
  testing::GgufBuilder file = testing::mini_gguf();
  testing::add_tokenizer(file);
  file.write(folder / "m.gguf");
  const LoadedModel m = LoadedModel::load(folder / "m.gguf");
  EXPECT_EQ(m.stop_ids, (std::vector<int32_t>{257, 258, 259}));
  EXPECT_EQ(m.path(), folder / "m.gguf");
  EXPECT_GT(m.weight_bytes(), 10000u);
}

TEST(GgufModel, WithoutATokenizerRunsOnIds) {
  const testing::TemporaryFolder folder;
  testing::mini_gguf().write(folder / "m.gguf");
  Engine engine(LoadedModel::load(folder / "m.gguf"), {});
  EXPECT_THROW(engine.loaded().require_tokenizer(), Error);
  EXPECT_TRUE(engine.loaded().stop_ids.empty());
  const auto request = engine.submit({5, 17, 9}, {.max_new_tokens = 4});
  EXPECT_EQ(request->wait().ids.size(), 4u);
}

TEST(GgufModel, WithoutAnOutputIsTiedToItsEmbedding) {
  const testing::TemporaryFolder folder;
  testing::mini_gguf().without_tensor("output.weight").write(folder / "m.gguf");
  EXPECT_TRUE(LoadedModel::load(folder / "m.gguf").config().tie_word_embeddings);
}

}  // namespace
}  // namespace kilin

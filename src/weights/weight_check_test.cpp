#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "support/configs.h"
#include "support/golden.h"
#include "weights/weight_map.h"

namespace kilin {
namespace {

using testing::in_repository;
using testing::published_config;

// Tensors without bytes: names, shapes and dtypes are all that is checked.
class FakeStore final : public TensorStore {
 public:
  explicit FakeStore(const ModelConfig& config) {
    for (const ExpectedTensor& tensor : expected_tensors(config)) put(tensor.name, tensor.published_dtype(), tensor.shape);
    for (const auto& [name, tensor] : tensors_) names_.push_back(name);
  }
  void add(const std::string& name, DType dtype, const Shape& shape) {
    put(name, dtype, shape);
    const auto at = std::lower_bound(names_.begin(), names_.end(), name);
    if (at == names_.end() || *at != name) names_.insert(at, name);
  }
  void remove(const std::string& name) {
    ASSERT_EQ(tensors_.erase(name), 1u) << name;
    names_.erase(std::lower_bound(names_.begin(), names_.end(), name));
  }
  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return source_; }
  std::optional<StoredTensor> find(std::string_view name) const override {
    ++finds_;
    const auto at = tensors_.find(name);
    return at == tensors_.end() ? std::nullopt : std::optional(at->second);
  }
  size_t finds() const { return finds_; }

 private:
  void put(const std::string& name, DType dtype, const Shape& shape) {
    tensors_[name] = {.name = name, .format = dtype, .shape = shape, .bytes = {}, .file = "file"};
  }

  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::vector<std::string> names_;
  std::string source_ = "folder";
  mutable size_t finds_ = 0;
};

ModelConfig small_config() {
  Json json = published_config();
  json["num_experts"] = 16;
  json["num_hidden_layers"] = 5;
  json["linear_attn_config"]["kda_layers"] = {1, 2, 3, 5};
  json["linear_attn_config"]["full_attn_layers"] = {4};
  return ModelConfig::parse(json.dump(), "config.json");
}

std::string complaint(const TensorStore& store, const ModelConfig& config) {
  try {
    check_tensors(store, config);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    return error.what();
  }
}

#define EXPECT_HOLDS(text, word) EXPECT_NE((text).find(word), std::string::npos) << "no \"" << (word) << "\" in: " << (text)

TEST(CheckTensors, AcceptsWhatIsExpected) {
  EXPECT_EQ(complaint(FakeStore(small_config()), small_config()), "");
  check_tensors(*Checkpoint::open(in_repository("models/tiny")), ModelConfig::read(in_repository("models/tiny")));
  GOLDEN_OR_SKIP(folder, "tiny-kimi-linear");
  check_tensors(*Checkpoint::open(folder), ModelConfig::read(folder));
}

TEST(CheckTensors, NamesAllThatIsMissingSurplusOrWrongAtOnce) {
  const ModelConfig config = small_config();
  FakeStore store(config);
  store.remove("model.norm.weight");
  store.remove("model.layers.2.self_attn.A_log");
  store.add("model.layers.3.self_attn.q_a_proj.weight", DType::bf16, {1536, 2304});
  store.add("mystery", DType::f32, {1});
  store.add("model.layers.3.self_attn.kv_b_proj.weight", DType::bf16, {8192, 511});
  store.add("lm_head.weight", DType::i8, {163840, 2304});
  const std::string text = complaint(store, config);
  EXPECT_HOLDS(text, "folder: ");
  EXPECT_HOLDS(text, "2 missing, 2 surplus, 2 of a wrong shape or dtype");
  EXPECT_HOLDS(text, "missing 'model.norm.weight'");
  EXPECT_HOLDS(text, "missing 'model.layers.2.self_attn.A_log'");
  EXPECT_HOLDS(text, "surplus 'model.layers.3.self_attn.q_a_proj.weight'");
  EXPECT_HOLDS(text, "surplus 'mystery'");
  EXPECT_HOLDS(text,
               "'model.layers.3.self_attn.kv_b_proj.weight' has shape [8192, 511]; expected [8192, 512] "
               "(num_attention_heads x (qk_nope_head_dim + v_head_dim), kv_lora_rank)");
  EXPECT_HOLDS(text, "'lm_head.weight' has dtype i8; expected one of bf16, f16, f32");
}

TEST(CheckTensors, ManyAlikeAreNamedAsRanges) {
  const ModelConfig config = small_config();
  FakeStore store(config);
  for (size_t layer = 1; layer < 5; ++layer)
    for (size_t expert = 0; expert < 16; ++expert)
      store.remove("model.layers." + std::to_string(layer) + ".block_sparse_moe.experts." + std::to_string(expert) +
                   ".w1.weight");
  for (const size_t expert : {0, 1, 2, 4, 5, 6, 8, 9, 10, 15})
    store.remove("model.layers.3.block_sparse_moe.experts." + std::to_string(expert) + ".w2.weight");
  for (size_t layer = 0; layer < 9; ++layer) store.add("model.layers." + std::to_string(layer) + ".extra", DType::f32, {1});
  const std::string text = complaint(store, config);
  EXPECT_HOLDS(text, "missing 'model.layers.{1-4}.block_sparse_moe.experts.{0-15}.w1.weight' (64)");
  EXPECT_HOLDS(text, "missing 'model.layers.3.block_sparse_moe.experts.{0-2,4-6,8-10,15}.w2.weight' (10)");
  EXPECT_HOLDS(text, "surplus 'model.layers.{0-8}.extra' (9)");
  EXPECT_LT(text.size(), 500u) << text;
}

TEST(CheckTensors, AMillionSurplusNamesMakeNoMillionLines) {
  const ModelConfig config = small_config();
  FakeStore store(config);
  std::string name = "a";
  for (size_t i = 0; i < 300; ++i) store.add(name += static_cast<char>('a' + i % 26), DType::f32, {1});
  const std::string text = complaint(store, config);
  EXPECT_HOLDS(text, "300 surplus");
  EXPECT_HOLDS(text, "and 200 more");
  EXPECT_LT(text.size(), 20000u);
}

TEST(CheckTensors, AcceptsEveryPlainFloatAndTheShapesThatAreTheSame) {
  const ModelConfig config = small_config();
  FakeStore store(config);
  store.add("model.layers.0.self_attn.A_log", DType::bf16, {32});
  store.add("model.layers.1.self_attn.A_log", DType::f32, {32, 1});
  store.add("model.layers.1.self_attn.dt_bias", DType::f16, {32, 128});
  store.add("model.layers.1.block_sparse_moe.gate.e_score_correction_bias", DType::f32, {16});
  store.add("model.layers.1.self_attn.q_proj.weight", DType::f32, {4096, 2304});
  store.add("model.layers.2.self_attn.q_proj.weight", DType::f16, {4096, 2304});
  EXPECT_EQ(complaint(store, config), "");

  store.add("model.layers.0.self_attn.A_log", DType::f32, {31});
  store.add("model.layers.2.self_attn.q_proj.weight", DType::f64, {4096, 2304});
  store.add("model.layers.1.self_attn.k_proj.weight", DType::bf16, {2304, 4096});
  const std::string text = complaint(store, config);
  EXPECT_HOLDS(text, "'model.layers.0.self_attn.A_log' has shape [31]; expected 32 elements");
  EXPECT_HOLDS(text, "has dtype f64");
  EXPECT_HOLDS(text, "has shape [2304, 4096]; expected [4096, 2304]");
}

TEST(CheckTensors, ATiedModelWithAHeadIsToldWhy) {
  Json json = published_config();
  json["tie_word_embeddings"] = true;
  const ModelConfig tied = ModelConfig::parse(json.dump(), "config.json");
  FakeStore store(tied);
  EXPECT_EQ(complaint(store, tied), "");
  store.add("lm_head.weight", DType::bf16, {163840, 2304});
  EXPECT_HOLDS(complaint(store, tied), "tie_word_embeddings is true");
}

TEST(CheckTensors, OneLayerIsCheckedWithoutALookAtTheOthers) {
  const ModelConfig config = small_config();
  FakeStore store(config);
  store.remove("model.norm.weight");
  store.remove("model.layers.1.self_attn.A_log");
  store.add("model.layers.22.extra", DType::f32, {1});
  EXPECT_NO_THROW(check_tensors_of_layer(store, config, 2));
  EXPECT_EQ(store.finds(), expected_tensors_of_layer(config, 2).size());
  EXPECT_THROW(check_tensors_of_layer(store, config, 1), Error);
  EXPECT_THROW(check_tensors_of_layer(store, config, 5), Error);
}

}  // namespace
}  // namespace kilin

#include "weights/weight_map.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "support/configs.h"
#include "support/published_tensors.h"

namespace kilin {
namespace {

using testing::published_config;

ModelConfig parse(const Json& json) { return ModelConfig::parse(json.dump(), "config.json"); }

std::string line_of(const ExpectedTensor& tensor) {
  std::ostringstream line;
  line << tensor.name << '\t' << (tensor.published_dtype() == DType::f32 ? "F32" : "BF16") << '\t';
  for (size_t axis = 0; axis < tensor.shape.rank(); ++axis) line << (axis ? "," : "") << tensor.shape[axis];
  return line.str();
}

// The published list was made without any weight map.
TEST(WeightMap, ExpectsExactlyThePublishedTensors) {
  const std::set<std::string> published = testing::published_tensors();
  std::set<std::string> expected;
  for (const ExpectedTensor& tensor : expected_tensors(parse(published_config()))) expected.insert(line_of(tensor));
  EXPECT_EQ(published.size(), 20493u);
  EXPECT_TRUE(published == expected);
  for (const std::string& line : published) ASSERT_TRUE(expected.contains(line)) << "not expected: " << line;
  for (const std::string& line : expected) ASSERT_TRUE(published.contains(line)) << "not published: " << line;
}

TEST(WeightMap, CountsThePublishedTotals) {
  size_t tensors = 0, parameters = 0, bytes = 0;
  std::set<std::string_view> patterns;
  for (const ExpectedTensor& tensor : expected_tensors(parse(published_config()))) {
    ++tensors;
    parameters += tensor.shape.elements();
    bytes += tensor.shape.elements() * size_of(tensor.published_dtype());
    patterns.insert(tensor.pattern->pattern);
  }
  EXPECT_EQ(tensors, 20493u);
  EXPECT_EQ(patterns.size(), 34u);
  EXPECT_EQ(parameters, 49122681728u);
  EXPECT_EQ(bytes, 98245528576u);
}

TEST(WeightMap, NamesEveryTensorAndEveryFieldOnce) {
  std::set<std::string> names;
  for (const ExpectedTensor& tensor : expected_tensors(parse(published_config())))
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
  std::set<std::string_view> fields;
  for (const WeightPattern& pattern : weight_patterns()) EXPECT_TRUE(fields.insert(pattern.field).second) << pattern.field;
}

TEST(WeightMap, TheLayersTogetherAreTheModelWithoutItsEnds) {
  const ModelConfig config = parse(published_config());
  std::multiset<std::string> by_layer = {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"};
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer)
    for (const ExpectedTensor& tensor : expected_tensors_of_layer(config, layer)) {
      EXPECT_TRUE(tensor.name.starts_with("model.layers." + std::to_string(layer) + ".")) << tensor.name;
      by_layer.insert(tensor.name);
    }
  std::multiset<std::string> whole;
  for (const ExpectedTensor& tensor : expected_tensors(config)) whole.insert(tensor.name);
  EXPECT_TRUE(by_layer == whole);
  EXPECT_THROW(expected_tensors_of_layer(config, 27), Error);
}

TEST(WeightMap, ATiedModelHasNoHead) {
  Json json = published_config();
  json["tie_word_embeddings"] = true;
  std::set<std::string> names;
  for (const ExpectedTensor& tensor : expected_tensors(parse(json))) names.insert(tensor.name);
  EXPECT_EQ(names.size(), 20492u);
  EXPECT_FALSE(names.contains("lm_head.weight"));
}

TEST(WeightMap, EveryFieldIsSharedAsTheModelDemands) {
  std::map<std::string_view, ShardRule> rules;
  for (const WeightPattern& pattern : weight_patterns()) rules[pattern.field] = pattern.shard;
  const std::pair<ShardRule, std::vector<const char*>> expected[] = {
      {ShardRule::Vocabulary, {"KimiLinearForCausalLM.embed_tokens", "KimiLinearForCausalLM.lm_head"}},
      {ShardRule::Columns,
       {"KimiDeltaAttention.q_proj", "KimiDeltaAttention.k_proj", "KimiDeltaAttention.v_proj", "KimiDeltaAttention.f_b_proj",
        "KimiDeltaAttention.g_b_proj", "KimiDeltaAttention.b_proj", "KimiMlaAttention.q_proj", "KimiMlaAttention.kv_b_proj",
        "KimiMlp.gate_proj", "KimiMlp.up_proj", "KimiMoe.shared_experts.gate_proj", "KimiMoe.shared_experts.up_proj"}},
      {ShardRule::Rows,
       {"KimiDeltaAttention.o_proj", "KimiMlaAttention.o_proj", "KimiMlp.down_proj", "KimiMoe.shared_experts.down_proj"}},
      {ShardRule::Heads,
       {"KimiDeltaAttention.q_conv1d", "KimiDeltaAttention.k_conv1d", "KimiDeltaAttention.v_conv1d",
        "KimiDeltaAttention.dt_bias", "KimiDeltaAttention.A_log"}},
      {ShardRule::ExpertsThenColumns, {"KimiMoe.experts.w1", "KimiMoe.experts.w3"}},
      {ShardRule::ExpertsThenRows, {"KimiMoe.experts.w2"}},
      {ShardRule::Replicated,
       {"KimiDeltaAttention.f_a_proj", "KimiDeltaAttention.g_a_proj", "KimiDeltaAttention.o_norm",
        "KimiMlaAttention.kv_a_proj_with_mqa", "KimiMlaAttention.kv_a_layernorm", "KimiMoe.gate",
        "KimiMoe.e_score_correction_bias", "KimiDecoderLayer.input_layernorm", "KimiDecoderLayer.post_attention_layernorm",
        "KimiLinearForCausalLM.norm"}}};
  size_t fields = 0;
  for (const auto& [rule, names] : expected)
    for (const char* name : names) {
      ASSERT_TRUE(rules.contains(name)) << name;
      EXPECT_EQ(rules[name], rule) << name;
      ++fields;
    }
  EXPECT_EQ(fields, rules.size());
}

}  // namespace
}  // namespace kilin

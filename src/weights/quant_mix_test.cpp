#include "weights/quant_mix.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/error.h"
#include "kernels/quant/quantize.h"
#include "support/configs.h"
#include "weights/weight_map.h"

namespace kilin {
namespace {

constexpr QuantType kTypes[] = {QuantType::q8_0, QuantType::q6_k, QuantType::q5_k_m, QuantType::q4_k_m, QuantType::q4_0};

ModelConfig published() { return ModelConfig::parse(testing::published_config().dump(), "config.json"); }

// "q4_k", or "stays"
std::string name_of(const std::optional<BlockFormat>& format) { return format ? std::string(to_string(*format)) : "stays"; }

// The format of every tensor of the published model, by name.
std::map<std::string, std::string> formats(QuantType type, const ModelConfig& config = published()) {
  std::map<std::string, std::string> all;
  for (const ExpectedTensor& tensor : expected_tensors(config))
    all[tensor.name] = name_of(QuantMix(type, config.num_hidden_layers).format_of(tensor));
  return all;
}

TEST(QuantMix, LeavesWhatIsSmallOrDelicateAsItIs) {
  for (QuantType type : kTypes)
    for (const auto& [name, format] : formats(type))
      for (const char* part : {"norm", "A_log", "dt_bias", "conv1d", "f_a_proj", "f_b_proj", "g_a_proj", "g_b_proj", ".b_proj",
                               "block_sparse_moe.gate.", "kv_b_proj", "embed_tokens"})
        if (name.find(part) != std::string::npos) {
          EXPECT_EQ(format, "stays") << name;
        }
}

TEST(QuantMix, NamesOneFormatAndMixesTwoInTheMiddleTypes) {
  using Names = std::set<std::string>;
  const auto kinds = [](QuantType type) {
    Names names;
    for (const auto& [name, format] : formats(type)) names.insert(format);
    return names;
  };
  EXPECT_EQ(kinds(QuantType::q8_0), (Names{"q8_0", "stays"}));
  EXPECT_EQ(kinds(QuantType::q6_k), (Names{"q6_k", "stays"}));
  EXPECT_EQ(kinds(QuantType::q5_k_m), (Names{"q5_k", "q6_k", "stays"}));
  EXPECT_EQ(kinds(QuantType::q4_k_m), (Names{"q4_k", "q6_k", "stays"}));
  EXPECT_EQ(kinds(QuantType::q4_0), (Names{"q4_0", "q6_k", "stays"}));
}

TEST(QuantMix, ValuesAndDownProductsAreFinerInAboutHalfOfTheLayers) {
  const auto all = formats(QuantType::q4_k_m);
  EXPECT_EQ(all.at("lm_head.weight"), "q6_k");
  EXPECT_EQ(all.at("model.layers.0.mlp.down_proj.weight"), "q6_k");
  EXPECT_EQ(all.at("model.layers.0.mlp.up_proj.weight"), "q4_k");
  EXPECT_EQ(all.at("model.layers.0.self_attn.v_proj.weight"), "q6_k");
  EXPECT_EQ(all.at("model.layers.0.self_attn.q_proj.weight"), "q4_k");
  EXPECT_EQ(all.at("model.layers.4.block_sparse_moe.experts.17.w2.weight"), "q4_k");
  EXPECT_EQ(all.at("model.layers.5.block_sparse_moe.experts.17.w2.weight"), "q6_k");
  EXPECT_EQ(all.at("model.layers.5.block_sparse_moe.experts.17.w1.weight"), "q4_k");
  EXPECT_EQ(all.at("model.layers.26.block_sparse_moe.shared_experts.down_proj.weight"), "q6_k");
  size_t finer = 0;
  for (size_t layer = 1; layer < 27; ++layer)
    finer += all.at(fmt::format("model.layers.{}.block_sparse_moe.experts.0.w2.weight", layer)) == "q6_k";
  EXPECT_EQ(finer, 12u);  // of 26
}

TEST(QuantMix, RowsThatTheFormatsDoNotDivideGetAnotherOrStay) {
  ModelConfig config = published();
  config.moe_intermediate_size = 96;
  const auto k = formats(QuantType::q4_k_m, config), legacy = formats(QuantType::q4_0, config);
  EXPECT_EQ(k.at("model.layers.4.block_sparse_moe.experts.0.w2.weight"), "q8_0");
  EXPECT_EQ(legacy.at("model.layers.4.block_sparse_moe.experts.0.w2.weight"), "q4_0");
  EXPECT_EQ(k.at("model.layers.4.block_sparse_moe.experts.0.w1.weight"), "q4_k");
  config.moe_intermediate_size = 40;
  EXPECT_EQ(formats(QuantType::q4_0, config).at("model.layers.4.block_sparse_moe.experts.0.w2.weight"), "stays");
}

TEST(QuantMix, AsksOnlyForFormatsThatKilinWrites) {
  for (QuantType type : kTypes) {
    const QuantMix mix(type, 27);
    for (size_t cols : {256u, 96u})
      if (const auto format = mix.format_of_table(cols)) {
        EXPECT_TRUE(can_quantize(*format));
      }
    for (const ExpectedTensor& tensor : expected_tensors(published()))
      if (const auto format = mix.format_of(tensor)) {
        EXPECT_TRUE(can_quantize(*format)) << tensor.name;
      }
  }
}

TEST(QuantMix, KnowsItsTypesByName) {
  for (QuantType type : kTypes) EXPECT_EQ(parse_quant_type(to_string(type)), type);
  EXPECT_EQ(known_quant_types(), "q8_0, q6_k, q5_k_m, q4_k_m or q4_0");
  EXPECT_THROW(parse_quant_type("q4_k"), Error);
}

TEST(WeightUse, EveryMatrixOfTheModelHasAUseThatFitsItsRank) {
  for (const WeightPattern& pattern : weight_patterns())
    EXPECT_EQ(pattern.use != WeightUse::Parameter, pattern.shape.size() == 2) << pattern.field;
}

}  // namespace
}  // namespace kilin

#include "config/layer_kinds.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/model_config.h"
#include "support/configs.h"

namespace kilin {
namespace {

using testing::expect_refused;
using testing::in_transformers_form;
using testing::published_config;

void parse_text(const std::string& text) { ModelConfig::parse(text, "config.json"); }

ModelConfig parse(const Json& json) { return ModelConfig::parse(json.dump(), "config.json"); }

TEST(LayerKinds, The27PublishedLayersHaveTheRightKinds) {
  const ModelConfig c = parse(published_config());
  ASSERT_EQ(c.num_hidden_layers, 27u);
  for (size_t layer = 0; layer < 27; ++layer) {
    const bool mla = (layer + 1) % 4 == 0 || layer == 26;  // 1-based 4, 8, 12, 16, 20, 24 and 27
    EXPECT_EQ(c.is_mla(layer), mla) << layer;
    EXPECT_EQ(c.is_kda(layer), !mla) << layer;
    EXPECT_EQ(c.is_moe(layer), layer != 0) << layer;
  }
  EXPECT_EQ(c.kda_layers(), 20u);
  EXPECT_EQ(c.mla_layers(), 7u);
}

TEST(LayerKinds, ExpertsMayStandInEveryNthLayer) {
  Json json = published_config();
  json["first_k_dense_replace"] = 2;
  json["moe_layer_freq"] = 3;
  const ModelConfig c = parse(json);
  for (size_t layer = 0; layer < 27; ++layer) EXPECT_EQ(c.is_moe(layer), layer >= 2 && layer % 3 == 0) << layer;
}

TEST(LayerKinds, LayerListsMustPartitionTheLayers) {
  const auto c = ErrorCode::Corrupt;
  const auto linear = [](Json& j) -> Json& { return j["linear_attn_config"]; };
  expect_refused(
      parse_text, published_config(),
      {{[&](Json& j) { linear(j)["kda_layers"].push_back(4); }, c, {"kda_layers", "full_attn_layers", "layer 4", "1..27"}},
       {[&](Json& j) { linear(j)["kda_layers"].erase(0); }, c, {"no layer 1", "1..27"}},
       {[&](Json& j) { linear(j)["kda_layers"].push_back(26); }, c, {"kda_layers", "26 twice"}},
       {[&](Json& j) { linear(j)["kda_layers"][0] = 0; }, c, {"kda_layers", "holds 0", "1..27"}},
       {[&](Json& j) { linear(j)["full_attn_layers"].push_back(28); }, c, {"full_attn_layers", "holds 28", "1..27"}},
       {[&](Json& j) { linear(j)["full_attn_layers"][0] = -4; }, c, {"full_attn_layers", "-4"}},
       {[&](Json& j) { linear(j)["kda_layers"][0] = 1.0; }, c, {"kda_layers", "1.0"}},
       {[&](Json& j) { linear(j)["kda_layers"] = "1,2,3"; }, c, {"kda_layers", "\"1,2,3\"", "list"}},
       {[&](Json& j) { j["num_hidden_layers"] = 28; }, c, {"layer 28"}},
       {[&](Json& j) { j["num_hidden_layers"] = 26; }, c, {"27", "1..26"}},
       {[&](Json& j) { j["linear_attn_config"] = Json::array(); }, c, {"linear_attn_config", "object"}},
       {[&](Json& j) { j["linear_attn_config"] = nullptr; }, c, {"linear_attn_config", "missing"}},
       {[&](Json& j) { j["layer_types"] = std::vector<std::string>(27, "linear_attention"); },
        c,
        {"layer_types", "linear_attn_config", "layer 3", "contradict"}}});
  expect_refused(parse_text, in_transformers_form(published_config()),
                 {{[](Json& j) { j["layer_types"].erase(0); }, c, {"layer_types", "26", "expected 27"}},
                  {[](Json& j) { j["layer_types"][5] = "sliding_attention"; },
                   ErrorCode::Unsupported,
                   {"layer_types", "sliding_attention", "layer 5", "full_attention"}},
                  {[](Json& j) { j["layer_types"][5] = 1; }, c, {"layer_types", "holds 1"}},
                  {[](Json& j) { j["mlp_layer_types"][1] = "moe"; },
                   ErrorCode::Unsupported,
                   {"mlp_layer_types", "'moe'", "dense or sparse"}},
                  {[](Json& j) { j["first_k_dense_replace"] = 2; },
                   c,
                   {"first_k_dense_replace", "mlp_layer_types", "layer 1", "contradict"}},
                  {[](Json& j) { j.erase("layer_types"); }, c, {"mla_use_nope"}}});
}

}  // namespace
}  // namespace kilin

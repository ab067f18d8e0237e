#include "trace/names.h"

#include <gtest/gtest.h>

#include <set>

namespace kilin {
namespace {

TEST(Names, AValueOfALayerSaysWhichBlockHoldsIt) {
  EXPECT_EQ(to_string({Value::Decays, 0}, "linear_attn"), "layers.0.linear_attn.decays");
  EXPECT_EQ(to_string({Value::AttentionInput, 3}, "self_attn"), "layers.3.self_attn.input");
  EXPECT_EQ(to_string({Value::LayerOutput, 26}, "self_attn"), "layers.26.layer_output");
  EXPECT_EQ(to_string({Value::Norm}, "linear_attn"), "norm");
}

TEST(Names, NoTwoValuesShareOne) {
  std::set<std::string> names;
  for (int v = 0; v <= static_cast<int>(Value::Norm); ++v)
    EXPECT_TRUE(names.insert(to_string({static_cast<Value>(v), 1}, "linear_attn")).second) << v;
}

}  // namespace
}  // namespace kilin

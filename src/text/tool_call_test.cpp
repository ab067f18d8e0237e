#include "text/tool_call.h"

#include <gtest/gtest.h>

namespace kilin {
namespace {

TEST(ToolCallId, HoldsTheNameOfTheFunction) {
  EXPECT_EQ(tool_call_id("get_weather", 3), "functions.get_weather:3");
  EXPECT_EQ(name_in_tool_call_id("functions.get_weather:3"), "get_weather");
  EXPECT_EQ(name_in_tool_call_id("functions.ns:tool.x:12"), "ns:tool.x");
}

TEST(ToolCallId, MayLackItsPrefixOrIndex) {
  EXPECT_EQ(name_in_tool_call_id("get_weather:3"), "get_weather");
  EXPECT_EQ(name_in_tool_call_id("functions.get_weather"), "get_weather");
  EXPECT_EQ(name_in_tool_call_id("functions.get:weather"), "get:weather");
  EXPECT_EQ(name_in_tool_call_id("functions.get:"), "get");
  EXPECT_EQ(name_in_tool_call_id("functions.:0"), "");
  EXPECT_EQ(name_in_tool_call_id(""), "");
}

}  // namespace
}  // namespace kilin

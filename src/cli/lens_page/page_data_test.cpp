#include "cli/lens_page/page_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace kilin::cli {
namespace {

Lens some_lens() {
  Lens lens;
  lens.ids = {3, 4};
  lens.logit_lens = {.rows = 1, .guesses = 1, .best = {{4, 0.5f}, {7, 1.0f}}, .actual = {{1, 0.5f}, {0, 0.0f}}};
  lens.attention = {{.layer = 2, .heads = 1, .probabilities = {1, 0.25f, 0.75f}}};
  lens.kda = {
      {.layer = 0, .heads = 1, .channels = 2, .half_lives = {1, INFINITY}, .token_half_lives = {0, 1e30f}, .betas = {0, 1}}};
  lens.experts = {
      {.layer = 1, .experts = 300, .chosen = 1, .indices = {258, 1}, .weights = {2, 1}, .load = std::vector<uint32_t>(300)}};
  return lens;
}

std::string name_of(int32_t id) { return id == 7 ? "</script><!--\"\\\n\u2028\xe9" : "t" + std::to_string(id); }

nlohmann::json parsed(const Lens& lens) {
  static std::string text;
  return nlohmann::json::parse(
      lens_page_data(lens, "a<b\xff", [](int32_t id) -> std::string_view { return text = name_of(id); }));
}

TEST(LensPageData, HoldsNumbersInBase64) {
  const nlohmann::json data = parsed(some_lens());
  EXPECT_EQ(data["ids"], (std::vector<int>{3, 4}));
  EXPECT_EQ(data["logit_lens"]["ids"], "BAAAAAcAAAA=");
  EXPECT_EQ(data["logit_lens"]["probabilities"], "AID//w==");  // 32768, 65535
  EXPECT_EQ(data["logit_lens"]["actual_ranks"], "AQAAAAAAAAA=");
  EXPECT_EQ(data["attention"]["layers"][0]["patterns"], "/4Dd");  // 255 times 1, 1/2, sqrt(3/4)
  EXPECT_EQ(data["kda"][0]["half_lives"], "gD7//w==");            // 16000: 2^0; infinite
  EXPECT_EQ(data["kda"][0]["token_half_lives"], "AAD+/w==");      // cut at both ends
  EXPECT_EQ(data["kda"][0]["betas"], "AP8=");
  EXPECT_EQ(data["experts"][0]["indices"], "AgEBAA==");
  EXPECT_EQ(data["experts"][0]["weights"], "//8AgA==");
  EXPECT_EQ(data["experts"][0]["largest_weight"], 2);
}

TEST(LensPageData, NamesEachTokenOnce) {
  const nlohmann::json data = parsed(some_lens());
  EXPECT_EQ(data["texts"].size(), 3u);
  EXPECT_EQ(data["texts"]["4"], "t4");
  EXPECT_EQ(data["texts"]["7"], "</script><!--\"\\\\\\n\\u2028\\xe9");
  EXPECT_EQ(data["model"], "a<b\\xff");
  EXPECT_EQ(data["has_texts"], true);
}

TEST(LensPageData, CanStandInAScript) {
  const std::string json = lens_page_data(some_lens(), "<!--", [](int32_t) -> std::string_view { return "</script>\u2028é"; });
  for (char c : json) EXPECT_TRUE(c >= ' ' && c < 0x7f && c != '<') << c;
}

TEST(LensPageData, WithoutATokenizerThereAreNoTexts) {
  const nlohmann::json data = nlohmann::json::parse(lens_page_data(some_lens(), "m", {}));
  EXPECT_EQ(data["has_texts"], false);
  EXPECT_TRUE(data["texts"].empty());
}

}  // namespace
}  // namespace kilin::cli

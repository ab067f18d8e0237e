#include "model/generation_config.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

TEST(GenerationConfig, OfTheEmbeddedModelNamesItsStopsAndItsSampling) {
  const GenerationConfig c = GenerationConfig::read(testing::in_repository("models/tiny"));
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{3842, 3849, 3841}));
  EXPECT_EQ(c.temperature, 0.7);
  EXPECT_EQ(c.top_p, 0.95);
  EXPECT_FALSE(c.top_k);
}

TEST(GenerationConfig, TakesOneStopOrManyAndNothingWhereTheFileIsSilent) {
  EXPECT_EQ(GenerationConfig::parse(R"({"eos_token_id": 7})", "f").eos_token_ids, std::vector<int32_t>{7});
  EXPECT_TRUE(GenerationConfig::parse(R"({"eos_token_id": null, "top_p": null})", "f").eos_token_ids.empty());
  EXPECT_EQ(GenerationConfig::parse(R"({"top_k": 50})", "f").top_k, 50u);
  EXPECT_TRUE(GenerationConfig::read("/no/such/folder").eos_token_ids.empty());
}

TEST(GenerationConfig, NamesWhatIsWrong) {
  for (const char* text : {"[]", R"({"eos_token_id": -1})", R"({"eos_token_id": [1, "x"]})", R"({"eos_token_id": 1.5})",
                           R"({"temperature": "hot"})", R"({"top_k": -3})", R"({"eos_token_id": 99999999999})"}) {
    try {
      GenerationConfig::parse(text, "generation_config.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt);
      EXPECT_EQ(std::string(error.what()).rfind("generation_config.json: ", 0), 0u) << error.what();
    }
  }
}

}  // namespace
}  // namespace kilin

#include "config/generation_config.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

constexpr size_t kVocabulary = 100;

TEST(GenerationConfig, OfTheEmbeddedModelNamesItsStopsAndItsSampling) {
  const GenerationConfig c = GenerationConfig::read(testing::in_repository("models/tiny"), 4096);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{3842, 3849, 3841}));
  EXPECT_EQ(c.temperature, 0.7);
  EXPECT_EQ(c.top_p, 0.95);
  EXPECT_FALSE(c.top_k);
}

TEST(GenerationConfig, TakesOneStopOrManyAndNothingWhereTheFileIsSilent) {
  EXPECT_EQ(GenerationConfig::parse(R"({"eos_token_id": 7})", "f", kVocabulary).eos_token_ids, std::vector<int32_t>{7});
  EXPECT_TRUE(GenerationConfig::parse(R"({"eos_token_id": null, "top_p": null})", "f", kVocabulary).eos_token_ids.empty());
  EXPECT_EQ(GenerationConfig::parse(R"({"top_k": 50})", "f", kVocabulary).top_k, 50u);
  EXPECT_TRUE(GenerationConfig::read("/no/such/folder", kVocabulary).eos_token_ids.empty());
}

TEST(GenerationConfig, KnowsWhetherToDraw) {
  EXPECT_EQ(GenerationConfig::parse(R"({"do_sample": false})", "f", kVocabulary).do_sample, false);
  EXPECT_EQ(GenerationConfig::parse(R"({"do_sample": true})", "f", kVocabulary).do_sample, true);
  EXPECT_FALSE(GenerationConfig::parse(R"({"do_sample": null})", "f", kVocabulary).do_sample);
}

TEST(GenerationConfig, NamesWhatIsWrong) {
  for (const char* text :
       {"[]", R"({"eos_token_id": -1})", R"({"eos_token_id": [1, "x"]})", R"({"eos_token_id": 1.5})",
        R"({"temperature": "hot"})", R"({"top_k": -3})", R"({"eos_token_id": 99999999999})", R"({"eos_token_id": 100})",
        R"({"eos_token_id": [1, 100]})", R"({"top_k": 1.5})", R"({"do_sample": 0})", R"({"do_sample": "no"})"}) {
    try {
      GenerationConfig::parse(text, "generation_config.json", kVocabulary);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt);
      EXPECT_EQ(std::string(error.what()).rfind("generation_config.json: ", 0), 0u) << error.what();
    }
  }
}

}  // namespace
}  // namespace kilin

#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/random.h"
#include "support/golden.h"
#include "support/tokens.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = Tokenizer::load(testing::in_repository("models/tiny"));
  return tokenizer;
}

void append_utf8(char32_t c, std::string& text) {
  const auto byte = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) return byte(0xc0 | c >> 6), byte(0x80 | (c & 0x3f));
  if (c < 0x10000) return byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f));
  byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 0x3f)), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f));
}

std::string random_text(uint64_t seed) {
  std::string text;
  for (uint64_t i = 0; i < 1 + seed % 60; ++i) {
    const uint64_t bits = random_bits(seed, i);
    const char32_t limit = bits % 4 == 0 ? 0x110000 : bits % 4 == 1 ? 0x3000 : 0x80;
    const auto c = static_cast<char32_t>((bits >> 8) % limit);
    if (c < 0xd800 || c > 0xdfff) append_utf8(c, text);
  }
  return text;
}

// golden/tokenizer: the ids that tiktoken itself gives with Kimi's pattern. The folder holds only tiktoken.model.
TEST(Tokenizer, GivesTheIdsOfTiktokenForEveryGoldenCase) {
  GOLDEN_OR_SKIP(folder, "tokenizer");
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const Json cases = read_json(folder / "cases.json");
  ASSERT_GE(cases.size(), 2998u);
  for (const Json& c : cases) {
    const auto text = c.at("text").get<std::string>();
    const Ids ids = c.at("special").get<bool>() ? tokenizer.encode_with_specials(text) : tokenizer.encode(text);
    ASSERT_EQ(ids, c.at("ids").get<Ids>()) << c.dump();
    ASSERT_EQ(tokenizer.decode(ids), text);
  }
}

// expected.json of models/tiny was made by another implementation.
TEST(Tokenizer, GivesThePromptIdsOfTheTinyModel) {
  const Json expected = read_json(testing::in_repository("models/tiny/expected.json"));
  for (const Json& prompt : expected.at("greedy")) {
    EXPECT_EQ(tiny().encode_with_specials(prompt.at("prompt").get<std::string>()), prompt.at("prompt_ids").get<Ids>());
    EXPECT_EQ(tiny().decode(prompt.at("ids").get<Ids>()), prompt.at("text").get<std::string>());
  }
  const Ids ids = tiny().encode(read_file(testing::in_repository("models/tiny/eval.txt")));
  EXPECT_EQ(ids.size(), expected.at("eval_tokens").get<size_t>() + 1) << "nothing predicts the first";
}

TEST(Tokenizer, DecodingGivesBackAnyText) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const std::string text = random_text(seed);
    ASSERT_EQ(tiny().decode(tiny().encode(text)), text);
    ASSERT_EQ(tiny().decode(tiny().encode_with_specials(text)), text);
  }
}

TEST(Tokenizer, NamesOfSpecialTokensAreTextUnlessAskedFor) {
  const std::string text = "a<|im_end|>b";
  const int32_t im_end = tiny().require_special("<|im_end|>");
  const Ids plain = tiny().encode(text);
  EXPECT_TRUE(std::none_of(plain.begin(), plain.end(), [](int32_t id) { return tiny().is_special(id); }));
  EXPECT_EQ(tiny().encode_with_specials(text), (Ids{tiny().encode("a")[0], im_end, tiny().encode("b")[0]}));
  EXPECT_EQ(tiny().decode(plain), text);
}

TEST(Tokenizer, TextBetweenSpecialTokensIsSplitForItself) {
  const int32_t bos = tiny().require_special("[BOS]");
  Ids expected = tiny().encode("x  ");  // the spaces end their text, so that they stay together
  expected.push_back(bos);
  const Ids rest = tiny().encode("  y");
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(tiny().encode_with_specials("x  [BOS]  y"), expected);
  EXPECT_EQ(tiny().encode_with_specials("[BOS][BOS]"), (Ids{bos, bos}));
}

TEST(Tokenizer, TakesAMegabyteOfAnything) {
  for (const char* unit : {"a", " ", "aA", "'", "\n", "é", "中", "<|im_", " a", "\u0301"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    EXPECT_EQ(tiny().decode(tiny().encode(text)), text);
    EXPECT_EQ(tiny().encode_with_specials(text).size(), tiny().encode(text).size());
  }
}

// Kimi's tokeniser cuts the text before anything else, so a piece ends where a cut is.
TEST(Tokenizer, ARunIsCutAfter25000Characters) {
  const std::string run(25000, 'e');
  Ids expected = tiny().encode(run);
  const Ids rest = tiny().encode("ee");
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(tiny().encode(run + "ee"), expected);
  EXPECT_EQ(tiny().encode_with_specials(std::string(24998, 'e') + "[BOS]"), tiny().encode(std::string(24998, 'e') + "[BOS]"))
      << "the cut goes through the name";
}

TEST(Tokenizer, BrokenUtf8IsRefusedWithItsOffset) {
  for (const auto encode : {&Tokenizer::encode, &Tokenizer::encode_with_specials}) {
    try {
      (tiny().*encode)("ab\xc3(");
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      EXPECT_NE(std::string(error.what()).find("byte 0xc3 at offset 2"), std::string::npos) << error.what();
    }
  }
}

TEST(Tokenizer, AnIdThatIsNoTokenIsRefused) {
  EXPECT_EQ(tiny().size(), 4096u);
  for (int32_t id : {-1, 4096, 1 << 30}) {
    EXPECT_THROW(tiny().token_bytes(id), Error);
    EXPECT_THROW(tiny().decode(Ids{1, id}), Error);
    EXPECT_FALSE(tiny().is_special(id));
  }
  try {
    tiny().require_tokens(Ids{1, 5000});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "token id 5000 at place 1 is not in the vocabulary; ids are 0 to 4095");
  }
}

TEST(Tokenizer, TokensBeyondTheEmbeddingAreRefusedByName) {
  tiny().require_vocabulary(4096);
  tiny().require_vocabulary(5000);
  const auto message = [](size_t rows) -> std::string {
    try {
      tiny().require_vocabulary(rows);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Unsupported);
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(4095).find("special token '[PAD]' has id 4095, but vocab_size is 4095"), std::string::npos)
      << message(4095);
  EXPECT_NE(message(97).find("token 'a' has id 97"), std::string::npos) << message(97);
}

TEST(Tokenizer, AMissingSpecialTokenIsNamed) {
  const Tokenizer tokenizer(testing::single_bytes_and(), {}, "model.gguf");
  EXPECT_EQ(tokenizer.size(), 256u);
  EXPECT_FALSE(tokenizer.is_special(255));
  EXPECT_EQ(tokenizer.encode_with_specials("<|im_end|>").size(), 10u);
  try {
    tokenizer.require_special("<|im_user|>");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Unsupported);
    EXPECT_NE(std::string(error.what()).find("model.gguf: the tokeniser has no token '<|im_user|>'"), std::string::npos);
  }
}

TEST(Tokenizer, AFolderWithoutOneSaysThatIdsCanBeUsed) {
  testing::TemporaryFolder folder;
  EXPECT_FALSE(Tokenizer::exists(folder.path()));
  EXPECT_TRUE(Tokenizer::exists(testing::in_repository("models/tiny")));
  try {
    Tokenizer::load(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::NotFound);
    EXPECT_NE(std::string(error.what()).find("token ids can"), std::string::npos);
  }
}

TEST(Tokenizer, TiktokenModelAloneIsEnough) {
  testing::TemporaryFolder folder;
  fs::copy_file(testing::in_repository("models/tiny/tiktoken.model"), folder / "tiktoken.model");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.special("<|im_middle|>"), 3840 + 17);
  EXPECT_EQ(tokenizer.size(), 4096u);
}

TEST(Tokenizer, ABrokenFileIsAnErrorThatNamesIt) {
  testing::TemporaryFolder folder;
  fs::copy_file(testing::in_repository("models/tiny/tiktoken.model"), folder / "tiktoken.model");
  std::ofstream(folder / "tokenizer_config.json") << "{\"added_tokens_decoder\": ";
  try {
    Tokenizer::load(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("tokenizer_config.json: not valid JSON"), std::string::npos) << error.what();
  }
  fs::remove(folder / "tiktoken.model");
  fs::create_directory(folder / "tiktoken.model");
  EXPECT_THROW(Tokenizer::load(folder.path()), Error);
}

}  // namespace
}  // namespace kilin

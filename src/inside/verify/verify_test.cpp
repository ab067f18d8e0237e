#include "inside/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "core/json.h"
#include "support/golden.h"
#include "synthetic/synthetic_checkpoint.h"
#include "text/tokenizer.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// Links to the files of models/tiny, so that a test can replace one of them.
class VerifyTiny : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* file :
         {"config.json", "generation_config.json", "model.safetensors", "tiktoken.model", "tokenizer_config.json"})
      fs::create_symlink(fs::absolute(testing::in_repository("models/tiny") / file), folder_ / file);
  }

  void put(const std::string& file, const std::string& bytes) {
    fs::remove(folder_ / file);
    std::ofstream(folder_ / file, std::ios::binary) << bytes;
  }
  static std::string original(const std::string& file) { return read_file(testing::in_repository("models/tiny") / file); }

  std::vector<Check> verify(VerifyOptions::Run run = VerifyOptions::Run::Everything) {
    return verify_model(folder_.path(), {.threads = 2, .tokens = 4, .run = run});
  }

  // Where the values of a tensor lie in model.safetensors.
  static size_t offset_of(const std::string& tensor) {
    const std::string bytes = original("model.safetensors");
    const auto header = parse_safetensors(std::as_bytes(std::span(bytes.data(), bytes.size())), "model");
    for (const StoredTensor& t : header.tensors)
      if (t.name == tensor) return static_cast<size_t>(reinterpret_cast<const char*>(t.bytes.data()) - bytes.data());
    ADD_FAILURE() << "no tensor " << tensor;
    return 0;
  }

  TemporaryFolder folder_;
};

const Check& named(const std::vector<Check>& checks, const std::string& name) {
  const auto at = std::ranges::find(checks, name, &Check::name);
  static const Check none;
  if (at == checks.end()) ADD_FAILURE() << "there was no check '" << name << "'";
  return at == checks.end() ? none : *at;
}

std::string all_of(const Check& check) {
  std::string text = check.summary;
  for (const std::string& detail : check.details) text += "\n" + detail;
  return text;
}

TEST_F(VerifyTiny, AWholeModelPasses) {
  Json expected = read_json(testing::in_repository("models/tiny/expected.json"));
  expected.erase("eval_perplexity");  // 16,000 tokens: too long for here
  put("expected.json", expected.dump());
  const auto checks = verify();
  EXPECT_TRUE(all_good(checks));
  for (const char* name :
       {"config", "files", "tensors", "values", "tokenizer", "chat format", "load", "logits", "answer", "expected answers"})
    EXPECT_EQ(named(checks, name).outcome, Outcome::Ok) << name << ": " << all_of(named(checks, name));
  EXPECT_EQ(named(checks, "tokenizer anchor").outcome, Outcome::Skipped);
}

TEST_F(VerifyTiny, PerplexityAndLogitsAreHeldAgainstExpectedJson) {
  // Two windows of eval.txt; their perplexity is not that of the whole text, so the expected value is taken from the first run.
  const std::string text = original("eval.txt").substr(0, 2000);
  put("eval.txt", text);
  const size_t tokens = Tokenizer::load(folder_.path()).encode(text).size();
  put("expected_logits.npy", original("expected_logits.npy"));
  Json expected = {{"eval_tokens", tokens - 1}, {"eval_window", 512}, {"eval_perplexity", 18.0}};
  put("expected.json", expected.dump());
  auto checks = verify();
  EXPECT_EQ(named(checks, "expected logits").outcome, Outcome::Ok) << all_of(named(checks, "expected logits"));
  EXPECT_EQ(named(checks, "expected perplexity").outcome, Outcome::Failed);

  expected["eval_perplexity"] = std::stod(named(checks, "expected perplexity").summary);
  put("expected.json", expected.dump());
  std::string logits = original("expected_logits.npy");
  logits[logits.size() - 1] = static_cast<char>(logits[logits.size() - 1] ^ 0x80);  // the sign of the last one
  put("expected_logits.npy", logits);
  checks = verify();
  EXPECT_EQ(named(checks, "expected perplexity").outcome, Outcome::Ok) << all_of(named(checks, "expected perplexity"));
  EXPECT_EQ(named(checks, "expected logits").outcome, Outcome::Failed);
}

TEST_F(VerifyTiny, AWrongContinuationFails) {
  Json expected = read_json(testing::in_repository("models/tiny/expected.json"));
  Json one = {{"greedy", Json::array({expected["greedy"][0]})}};
  one["greedy"][0]["ids"][3] = 17;
  put("expected.json", one.dump());
  const auto checks = verify();
  EXPECT_EQ(named(checks, "expected answers").outcome, Outcome::Failed);
  EXPECT_EQ(named(checks, "expected answers").summary, "1 of 1 continuations are wrong");
  EXPECT_NE(all_of(named(checks, "expected answers")).find("3 of 48"), std::string::npos);
  put("expected.json", "[");
  EXPECT_EQ(named(verify(), "expected").outcome, Outcome::Failed);
}

TEST_F(VerifyTiny, AnExpectedJsonWithoutAnExpectationIsSkipped) {
  for (const char* text : {"{}", R"({"greedy": []})", R"({"eval_tokens": 5})"}) {
    put("expected.json", text);
    const auto checks = verify();
    EXPECT_EQ(named(checks, "expected").outcome, Outcome::Skipped) << text;
    EXPECT_NE(named(checks, "expected").summary.find("holds no expectation"), std::string::npos) << text;
    EXPECT_TRUE(all_good(checks)) << text;
  }
}

TEST_F(VerifyTiny, AnExpectationOfAWrongTypeFails) {
  for (const char* greedy :
       {"null", "{}", "\"x\"", "[1]", "[{}]", R"([{"prompt": 1, "prompt_ids": [1], "ids": [1]}])",
        R"([{"prompt": "x", "prompt_ids": [1.5], "ids": [1]}])", R"([{"prompt": "x", "prompt_ids": [true], "ids": [1]}])",
        R"([{"prompt": "x", "prompt_ids": [1], "ids": [4294967297]}])", R"([{"prompt": "x", "prompt_ids": [1], "ids": []}])"}) {
    put("expected.json", std::string(R"({"greedy": )") + greedy + "}");
    EXPECT_EQ(named(verify(), "expected answers").outcome, Outcome::Failed) << greedy;
  }
  put("eval.txt", "The whale.");
  const size_t tokens = Tokenizer::load(folder_.path()).encode("The whale.").size();
  for (const auto& [perplexity, window] : {std::pair(Json("x"), Json(64)),
                                           {Json(nullptr), Json(64)},
                                           {Json(18.0), Json(-1)},
                                           {Json(18.0), Json(1.5)},
                                           {Json(18.0), Json(true)}}) {
    put("expected.json", Json({{"eval_perplexity", perplexity}, {"eval_window", window}, {"eval_tokens", tokens - 1}}).dump());
    EXPECT_EQ(named(verify(), "expected perplexity").outcome, Outcome::Failed) << perplexity << window;
  }
}

TEST_F(VerifyTiny, AnEosBeyondTheVocabularyFails) {
  put("generation_config.json", R"({"eos_token_id": [3842, 4096]})");
  const auto checks = verify(VerifyOptions::Run::FilesOnly);
  EXPECT_EQ(named(checks, "config").outcome, Outcome::Failed);
  EXPECT_NE(named(checks, "config").summary.find("4096"), std::string::npos) << named(checks, "config").summary;
}

TEST_F(VerifyTiny, NanAndInfinityAreNamedWithTensorAndPlaceAndNothingIsRun) {
  const std::string a = "model.layers.3.self_attn.kv_b_proj.weight", b = "model.layers.0.self_attn.A_log";
  std::string bytes = original("model.safetensors");
  bytes.replace(offset_of(a) + 2 * (128 * 5 + 7), 2, std::string("\xc0\x7f", 2));  // bf16 NaN at [5, 7] of [512, 128]
  bytes.replace(offset_of(b) + 4 * 2, 4, std::string("\x00\x00\x80\xff", 4));      // -inf at [0, 0, 2, 0]
  put("model.safetensors", bytes);
  const auto checks = verify();
  const Check& values = named(checks, "values");
  EXPECT_EQ(values.outcome, Outcome::Failed);
  EXPECT_EQ(values.details.size(), 2u);
  EXPECT_NE(all_of(values).find("'" + a + "' holds 1 NaN and 0 infinite values, the first at [5, 7]"), std::string::npos)
      << all_of(values);
  EXPECT_NE(all_of(values).find("'" + b + "' holds 0 NaN and 1 infinite values, the first at [0, 0, 2, 0]"), std::string::npos)
      << all_of(values);
  EXPECT_EQ(named(checks, "tensors").outcome, Outcome::Ok);
  EXPECT_EQ(named(checks, "tokenizer").outcome, Outcome::Ok);
  EXPECT_EQ(named(checks, "load").outcome, Outcome::Skipped);
}

TEST_F(VerifyTiny, AMatrixOfZerosIsNoted) {
  const std::string name = "model.layers.1.self_attn.o_proj.weight";
  std::string bytes = original("model.safetensors");
  bytes.replace(offset_of(name), 2 * 256 * 256, std::string(2 * 256 * 256, '\0'));
  put("model.safetensors", bytes);
  const auto checks = verify(VerifyOptions::Run::FilesOnly);
  EXPECT_EQ(named(checks, "values").outcome, Outcome::Note);
  EXPECT_EQ(named(checks, "values").summary, "1 matrices are all zero");
  EXPECT_NE(all_of(named(checks, "values")).find(name), std::string::npos);
  EXPECT_TRUE(all_good(checks));
}

TEST_F(VerifyTiny, ATruncatedFileIsNamedAndTheRestIsStillChecked) {
  const std::string bytes = original("model.safetensors");
  put("model.safetensors", bytes.substr(0, bytes.size() - 1000));
  const auto checks = verify();
  EXPECT_EQ(named(checks, "files").outcome, Outcome::Failed);
  EXPECT_NE(all_of(named(checks, "files")).find("model.safetensors"), std::string::npos);
  EXPECT_EQ(named(checks, "values").outcome, Outcome::Skipped);
  EXPECT_EQ(named(checks, "tokenizer").outcome, Outcome::Ok);
}

TEST_F(VerifyTiny, AWrongShapeIsNamed) {
  Json config = Json::parse(original("config.json"));
  config["moe_intermediate_size"] = 128;
  put("config.json", config.dump());
  const auto checks = verify();
  EXPECT_EQ(named(checks, "tensors").outcome, Outcome::Failed);
  EXPECT_NE(all_of(named(checks, "tensors")).find("block_sparse_moe.experts"), std::string::npos);
  EXPECT_EQ(named(checks, "load").outcome, Outcome::Skipped);
}

TEST_F(VerifyTiny, AConfigurationThatCannotBeReadEndsIt) {
  put("config.json", "{}");
  const auto checks = verify();
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].outcome, Outcome::Failed);
}

TEST_F(VerifyTiny, ATokenizerBeyondTheEmbeddingFails) {
  std::string ranks = original("tiktoken.model");
  ranks += "//79/f7///8= 3840\n";  // one more token
  put("tiktoken.model", ranks);
  EXPECT_EQ(named(verify(), "tokenizer").outcome, Outcome::Failed);
}

TEST_F(VerifyTiny, WithoutATokenizerTheModelRunsOnIds) {
  fs::remove(folder_ / "tiktoken.model");
  const auto checks = verify();
  EXPECT_TRUE(all_good(checks));
  EXPECT_EQ(named(checks, "tokenizer").outcome, Outcome::Skipped);
  EXPECT_EQ(named(checks, "answer").outcome, Outcome::Ok);
}

// As many ranks as the published tokenizer has, but different ones: the single bytes, then numbers of three bytes.
std::string other_ranks() {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t rank = 0; rank < 163'584; ++rank) {
    const bool byte = rank < 256;
    const size_t bits = byte ? rank << 16 : rank * 7;
    for (size_t i = 0; i < 4; ++i) text += byte && i >= 2 ? '=' : kDigits[(bits >> (18 - 6 * i)) & 63];
    text += fmt::format(" {}\n", rank);
  }
  return text;
}

TEST_F(VerifyTiny, AVocabularyOfThePublishedSizeWithOtherTokensFailsTheAnchor) {
  put("tiktoken.model", other_ranks());
  fs::remove(folder_ / "tokenizer_config.json");
  Json config = Json::parse(original("config.json"));
  config["vocab_size"] = 163'840;
  put("config.json", config.dump());
  const auto checks = verify(VerifyOptions::Run::FilesOnly);
  EXPECT_EQ(named(checks, "tokenizer").outcome, Outcome::Ok) << all_of(named(checks, "tokenizer"));
  EXPECT_EQ(named(checks, "tokenizer anchor").outcome, Outcome::Failed);
  EXPECT_NE(all_of(named(checks, "tokenizer anchor")).find("163587 2482 163601 69211"), std::string::npos);
}

TEST(Verify, AShardThatIsMissingIsNamedAndTheOthersAreScanned) {
  TemporaryFolder folder;
  SyntheticCheckpoint checkpoint;
  checkpoint.config = testing::in_repository("tests/golden/tiny-kimi-linear");
  checkpoint.shape = {.layers = 2, .experts = 4};
  checkpoint.max_shard_bytes = 300'000;
  ThreadPool pool(1);
  checkpoint.write(folder / "m", pool);
  const std::string missing = Checkpoint::open(folder / "m")->shards().at(1);
  fs::remove(folder / ("m/" + missing));
  const auto checks = verify_model(folder / "m", {});
  EXPECT_EQ(named(checks, "files").outcome, Outcome::Failed);
  EXPECT_EQ(named(checks, "files").summary.find("1 of "), 0u) << named(checks, "files").summary;
  EXPECT_NE(all_of(named(checks, "files")).find(missing), std::string::npos);
  EXPECT_EQ(named(checks, "tensors").outcome, Outcome::Failed);
  EXPECT_EQ(named(checks, "values").outcome, Outcome::Ok);
  EXPECT_EQ(named(checks, "load").outcome, Outcome::Skipped);
}

TEST(Verify, RandomWeightsOfEveryFormAreAModelThatRuns) {
  for (DType dtype : {DType::bf16, DType::f32}) {
    TemporaryFolder folder;
    SyntheticCheckpoint checkpoint;
    checkpoint.config = testing::in_repository("tests/golden/tiny-kimi-linear");
    checkpoint.shape.dtype = dtype;
    checkpoint.max_shard_bytes = 2'000'000;
    ThreadPool pool(2);
    checkpoint.write(folder / "m", pool);
    const auto checks = verify_model(folder / "m", {.threads = 2, .tokens = 4});
    EXPECT_TRUE(all_good(checks));
    EXPECT_EQ(named(checks, "logits").outcome, Outcome::Ok) << all_of(named(checks, "logits"));
    EXPECT_EQ(named(checks, "answer").outcome, Outcome::Ok) << all_of(named(checks, "answer"));
  }
}

TEST(CheckReporter, AnErrorIsAFailureWithItsLines) {
  std::vector<std::string> heard;
  CheckReporter reporter({.done = [&](const Check& check) { heard.push_back(check.name); }, .progress = {}});
  EXPECT_FALSE(reporter.run("a", []() -> Check { raise(ErrorCode::Corrupt, "first\n  second\n  third"); }));
  EXPECT_TRUE(reporter.run("b", [] { return note("look"); }));
  EXPECT_FALSE(reporter.skip("c", "why"));
  EXPECT_EQ(heard, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(reporter.checks()[0].summary, "first");
  EXPECT_EQ(reporter.checks()[0].details, (std::vector<std::string>{"second", "third"}));
  EXPECT_FALSE(all_good(reporter.checks()));
}

}  // namespace
}  // namespace kilin

#include "cli/options/sampling_options.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/sampling_defaults.h"

namespace kilin::cli {
namespace {

ErrorCode code_of(const SamplingFlags& flags, const GenerationConfig& config) {
  try {
    flags.params(config, "generation_config.json");
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::Io;
}

TEST(SamplingOptions, TheCommandLineWinsOverTheCheckpointAndThatOverOurDefaults) {
  GenerationConfig config;
  EXPECT_EQ(SamplingFlags().params(config, "").temperature, kDefaultTemperature);
  config.temperature = 0.7;
  config.top_p = 0.95;
  config.top_k = 40;
  const SamplingParams of_config = SamplingFlags().params(config, "");
  EXPECT_EQ(of_config.temperature, 0.7);
  EXPECT_EQ(of_config.top_p, 0.95);
  EXPECT_EQ(of_config.top_k, 40u);
  const SamplingParams of_flags = SamplingFlags{.temperature = 0.1, .top_k = 0, .min_p = 0.2}.params(config, "");
  EXPECT_EQ(of_flags.temperature, 0.1);
  EXPECT_EQ(of_flags.top_p, 0.95);
  EXPECT_EQ(of_flags.top_k, 0u);
  EXPECT_EQ(of_flags.min_p, 0.2);
}

TEST(SamplingOptions, ACheckpointThatDoesNotSampleIsGreedyUnlessATemperatureIsGiven) {
  GenerationConfig config;
  config.temperature = 0.7;
  config.do_sample = false;
  EXPECT_EQ(SamplingFlags().params(config, "").temperature, 0);
  EXPECT_EQ((SamplingFlags{.temperature = 0.3}.params(config, "").temperature), 0.3);
  config.do_sample = true;
  EXPECT_EQ(SamplingFlags().params(config, "").temperature, 0.7);
}

TEST(SamplingOptions, RefusalsNameTheOptionOrTheKey) {
  const auto message = [](const SamplingFlags& flags, const GenerationConfig& config) -> std::string {
    try {
      flags.params(config, "generation_config.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.temperature = -1}, {}), "--temp is -1; expected 0 or a number above it");
  EXPECT_EQ(message({.top_p = 0}, {}).find("--top-p is 0;"), 0u);
  EXPECT_EQ(message({.min_p = 2}, {}).find("--min-p is 2;"), 0u);
  EXPECT_EQ(message({.repetition_penalty = 0}, {}).find("--repetition-penalty is 0;"), 0u);
  GenerationConfig config;
  config.top_p = 2;
  EXPECT_EQ(message({}, config).find("generation_config.json: top_p is 2;"), 0u);
}

TEST(SamplingOptions, TheSeedIsTheOneThatWasGiven) {
  EXPECT_EQ((SamplingFlags{.temperature = 1.0, .seed = 7}.params({}, "").seed), 7u);
  EXPECT_EQ((SamplingFlags{.temperature = 0.0}.params({}, "").seed), 0u);  // nothing is drawn
}

TEST(SamplingOptions, BadFlagsAreTheUsersFaultAndBadFilesTheFiles) {
  EXPECT_EQ(code_of({.temperature = -1}, {}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of({.top_p = 0}, {}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of({.min_p = 1.5}, {}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of({.repetition_penalty = 0}, {}), ErrorCode::InvalidArgument);
  EXPECT_THROW((SamplingFlags{.temperature = -1}.validate()), Error);
  GenerationConfig config;
  config.temperature = -1;
  EXPECT_EQ(code_of({.temperature = 1}, config), ErrorCode::Corrupt);
}

}  // namespace
}  // namespace kilin::cli

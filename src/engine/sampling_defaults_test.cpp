#include "engine/sampling_defaults.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace kilin {
namespace {

TEST(SamplingDefaults, AreTheCheckpointsAndOursWhereItSaysNothing) {
  const SamplingParams ours = default_sampling({}, "f");
  EXPECT_EQ(ours.temperature, kDefaultTemperature);
  EXPECT_EQ(ours.top_k, 0u);
  EXPECT_EQ(ours.top_p, 1);
  GenerationConfig config;
  config.temperature = 1.5;
  config.top_k = 7;
  config.top_p = 0.5;
  config.min_p = 0.1;
  config.repetition_penalty = 1.2;
  const SamplingParams its = default_sampling(config, "f");
  EXPECT_EQ(its.temperature, 1.5);
  EXPECT_EQ(its.top_k, 7u);
  EXPECT_EQ(its.top_p, 0.5);
  EXPECT_EQ(its.min_p, 0.1);
  EXPECT_EQ(its.repetition_penalty, 1.2);
  config.do_sample = false;
  EXPECT_EQ(default_sampling(config, "f").temperature, 0);
}

TEST(SamplingDefaults, ValuesThatCannotBeMeantAreRefusedByTheNameOfTheFile) {
  GenerationConfig config;
  config.top_p = 3;
  try {
    default_sampling(config, "folder/generation_config.json");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    EXPECT_STREQ(error.what(), "folder/generation_config.json: top_p is 3; expected above 0, at most 1");
  }
}

}  // namespace
}  // namespace kilin

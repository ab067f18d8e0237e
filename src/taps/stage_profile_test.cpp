#include "taps/stage_profile.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kilin {
namespace {

// A clock that moves only when told to.
class StageProfileTest : public ::testing::Test {
 protected:
  StageProfile profile_{[this] { return now_ns_; }};
  uint64_t now_ns_ = 1000;

  uint64_t ns(Stage stage) const { return profile_[stage].ns; }
};

TEST_F(StageProfileTest, AnInnerScopeStopsTheOuterOnesClock) {
  {
    StageScope outer(&profile_, Stage::Router);
    now_ns_ += 5;
    {
      StageScope inner(&profile_, Stage::Experts);
      now_ns_ += 70;
      {
        StageScope innermost(&profile_, Stage::Activations);
        now_ns_ += 300;
      }
      now_ns_ += 20;
    }
    now_ns_ += 1;
  }
  EXPECT_EQ(ns(Stage::Router), 6u);
  EXPECT_EQ(ns(Stage::Experts), 90u);
  EXPECT_EQ(ns(Stage::Activations), 300u);
  EXPECT_EQ(profile_.sum().ns, 396u);
}

TEST_F(StageProfileTest, TimeOutsideOfAllScopesIsNobodys) {
  now_ns_ += 1000;
  { StageScope scope(&profile_, Stage::Norms); }
  now_ns_ += 1000;
  {
    StageScope scope(&profile_, Stage::Norms);
    now_ns_ += 3;
  }
  now_ns_ += 1000;
  { StageScope scope(&profile_, Stage::LmHead); }
  EXPECT_EQ(ns(Stage::Norms), 3u);
  EXPECT_EQ(profile_.sum().ns, 3u);
}

TEST_F(StageProfileTest, AScopeMovesOnAndGivesBackToTheOneOutside) {
  {
    StageScope outer(&profile_, Stage::Norms);
    {
      StageScope scope(&profile_, Stage::MlaProjections);
      now_ns_ += 2;
      scope.next(Stage::MlaAttention);
      now_ns_ += 30;
      scope.next(Stage::MlaOutput);
      now_ns_ += 400;
    }
    now_ns_ += 5000;
  }
  EXPECT_EQ(ns(Stage::MlaProjections), 2u);
  EXPECT_EQ(ns(Stage::MlaAttention), 30u);
  EXPECT_EQ(ns(Stage::MlaOutput), 400u);
  EXPECT_EQ(ns(Stage::Norms), 5000u);
}

TEST_F(StageProfileTest, CostsGoToTheOpenStage) {
  profile_.add({.weight_bytes = 1});  // to no stage, but sum() counts it
  {
    StageScope scope(&profile_, Stage::Experts);
    profile_.add({.weight_bytes = 10, .int8_operations = 7, .experts = 2});
    profile_.add({.weight_bytes = 20, .fp32_operations = 5});
    scope.next(Stage::KdaRecurrence);
    profile_.add({.state_bytes = 100, .latent_bytes = 1000});
  }
  EXPECT_EQ(profile_[Stage::Experts].cost,
            (StageCost{.weight_bytes = 30, .int8_operations = 7, .fp32_operations = 5, .experts = 2}));
  EXPECT_EQ(profile_[Stage::Experts].cost.operations(), 12u);
  EXPECT_EQ(profile_[Stage::KdaRecurrence].cost.bytes(), 1100u);
  EXPECT_EQ(profile_.sum().cost.bytes(), 1131u);
  profile_.clear();
  EXPECT_EQ(profile_.sum().cost, StageCost{});
}

TEST(StageProfile, WithoutAClockItCountsOnly) {
  StageProfile profile;
  EXPECT_FALSE(profile.has_times());
  {
    StageScope scope(&profile, Stage::LmHead);
    profile.add({.weight_bytes = 3});
  }
  EXPECT_EQ(profile[Stage::LmHead].ns, 0u);
  EXPECT_EQ(profile[Stage::LmHead].cost.weight_bytes, 3u);
}

TEST(StageProfile, WithoutAProfileAScopeDoesNothing) {
  StageScope scope(nullptr, Stage::Norms);
  scope.next(Stage::LmHead);
}

TEST(StageProfile, EveryStageHasANameOfItsOwn) {
  std::set<std::string> names;
  for (size_t stage = 0; stage < kStages; ++stage) names.emplace(to_string(static_cast<Stage>(stage)));
  EXPECT_EQ(names.size(), kStages);
  EXPECT_FALSE(names.contains("?"));
}

}  // namespace
}  // namespace kilin

#include "cli/report/inspection.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/golden.h"

namespace kilin::cli {
namespace {

namespace fs = std::filesystem;
using testing::in_repository;
using testing::TemporaryFolder;

TEST(Inspection, OfTheRealConfigurationAloneTellsAllThatIsExpected) {
  const auto json = Inspection::of(in_repository("tests/golden/real"), 2).json(Alike::Together);
  EXPECT_EQ(json["tensors"], 20'493);
  EXPECT_EQ(json["parameters"], 49'122'681'728);
  EXPECT_EQ(json["bytes"], 98'245'528'576);
  EXPECT_EQ(json["presence"]["expected"], 20'493);
  EXPECT_EQ(json["layers"].size(), 27u);
  EXPECT_EQ(json["layers"][26]["attention"], "mla");
  EXPECT_EQ(json["layers"][0]["feed_forward"], "dense");
  ASSERT_EQ(json["memory"].size(), 12u);
  EXPECT_EQ(json["memory"][10]["context_tokens"], 1'048'576);
  EXPECT_EQ(json["memory"][10]["latent_bytes_per_token"], 8064);
  EXPECT_EQ(json["memory"][10]["latent_bytes"], uint64_t{1'048'576} * 8064);
  EXPECT_EQ(json["memory"][0]["state_bytes"], 44'892'160);
}

TEST(Inspection, ShowsNoContextBeyondTheModels) {
  const auto json = Inspection::of(in_repository("tests/golden/tiny-kimi-linear"), 1).json(Alike::Apart);
  ASSERT_EQ(json["memory"].size(), 3u);  // the model ends at 4096
  EXPECT_EQ(json["presence"]["stored"], 493);
}

// The shard of the later layers is not there.
class HalfACheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* file : {"config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"})
      fs::create_symlink(fs::absolute(in_repository("tests/golden/tiny-kimi-linear") / file), folder_ / file);
  }
  TemporaryFolder folder_;
  ThreadPool pool_{2};
};

TEST_F(HalfACheckpoint, IsInspectedAsFarAsItGoes) {
  const Inspection inspection = Inspection::of(folder_.path(), 1);
  const auto json = inspection.json(Alike::Together);
  EXPECT_GT(json["presence"]["stored"], 100);
  EXPECT_GT(json["presence"]["unreadable"], 100);
  ASSERT_EQ(json["unreadable_files"].size(), 1u);
  EXPECT_NE(json["unreadable_files"][0].get<std::string>().find("model-00002-of-00002"), std::string::npos);
  EXPECT_EQ(json["bytes"], 7'622'848);
}

TEST_F(HalfACheckpoint, ALayerOfTheShardThatIsThereIsReadWhole) {
  const LayerInspection layer = LayerInspection::of(folder_.path(), 0, pool_);
  EXPECT_TRUE(layer.faults.empty());
  const auto json = layer.json();
  EXPECT_EQ(json["attention"], "kda");
  EXPECT_EQ(json["feed_forward"], "dense");
  EXPECT_GT(json["tensors"].size(), 15u);
  for (const auto& tensor : json["tensors"]) {
    EXPECT_EQ(tensor["presence"], "stored") << tensor;
    EXPECT_GT(tensor["rms"], 0) << tensor;
    EXPECT_EQ(tensor["nans"], 0) << tensor;
  }
}

TEST_F(HalfACheckpoint, ALayerOfTheOtherIsAFault) {
  const LayerInspection layer = LayerInspection::of(folder_.path(), 7, pool_);
  ASSERT_FALSE(layer.faults.empty());
  EXPECT_NE(layer.faults[0].find("model-00002-of-00002"), std::string::npos);
}

TEST_F(HalfACheckpoint, ALayerThatTheModelDoesNotHaveIsRefused) {
  EXPECT_THROW(LayerInspection::of(folder_.path(), 8, pool_), Error);
}

TEST(Inspection, ABrokenFileIsToldAndTheRestExpected) {
  TemporaryFolder folder;
  fs::create_symlink(fs::absolute(in_repository("models/tiny/config.json")), folder / "config.json");
  fs::create_symlink(fs::absolute(in_repository("models/tiny/config.json")), folder / "model.safetensors");
  const auto json = Inspection::of(folder.path(), 1).json(Alike::Together);
  EXPECT_EQ(json["presence"]["unreadable"], json["tensors"]);
  EXPECT_EQ(json["unreadable_files"].size(), 1u);
  EXPECT_EQ(json["parameters"], 13'220'664);
}

TEST(Inspection, OfALayerWithoutWeightsThereIsNothingToRead) {
  ThreadPool pool(1);
  EXPECT_THROW(LayerInspection::of(in_repository("tests/golden/real"), 0, pool), Error);
}

}  // namespace
}  // namespace kilin::cli

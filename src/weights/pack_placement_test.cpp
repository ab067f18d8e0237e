#include "weights/pack_placement.h"

#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;

class PackPlacementOfTiny : public ::testing::Test {
 protected:
  PackPlacementOfTiny() { fs::create_directory(folder_ / "model"); }

  fs::path model() const { return folder_ / "model"; }
  std::unique_ptr<PackStore> place(const std::string& where, uint64_t memory) const {
    return place_packs(PackPlacement::parse(where), model(), plan_, origin_, {.total = memory, .available = memory});
  }

  const testing::TemporaryFolder folder_;
  const std::shared_ptr<const Checkpoint> checkpoint_ = Checkpoint::open(testing::in_repository("models/tiny"));
  const ModelConfig config_ = ModelConfig::read(testing::in_repository("models/tiny"));
  const PackOrigin origin_ = {.weights = checkpoint_, .quantize = QuantType::q8_0};
  const PackPlan plan_ = PackPlan::of(*checkpoint_, config_, QuantType::q8_0);
};

TEST_F(PackPlacementOfTiny, AutoTakesAFileFromHalfOfTheMemoryOn) {
  EXPECT_EQ(place("auto", 2 * plan_.bytes())->file(), "");
  EXPECT_EQ(place("auto", 2 * plan_.bytes() - 1)->file(), model() / "model-q8_0.kilin-pack");
}

TEST_F(PackPlacementOfTiny, OffNeverTakesAFileAndAFolderAlways) {
  EXPECT_EQ(place("off", 1)->file(), "");
  const fs::path other = folder_ / "new/folder";
  const auto packs = place(other.string(), UINT64_MAX);
  EXPECT_EQ(packs->file().parent_path(), other);
  EXPECT_TRUE(fs::is_directory(other));
}

TEST_F(PackPlacementOfTiny, ModelsOfOneNameHaveFilesOfTheirOwn) {
  const auto name = [&](const fs::path& path, const fs::path& in) { return pack_file(path, in, origin_).filename().string(); };
  EXPECT_EQ(name(model(), model()), "model-q8_0.kilin-pack");
  EXPECT_EQ(name(model() / "", model()), "model-q8_0.kilin-pack");
  EXPECT_EQ(name("/a/kimi.gguf", "/a"), "kimi.gguf-q8_0.kilin-pack");
  EXPECT_EQ(name("/a/kimi.gguf", "/a/"), "kimi.gguf-q8_0.kilin-pack");
  EXPECT_NE(name("/a/kimi.gguf", "/c"), name("/b/kimi.gguf", "/c"));
  EXPECT_EQ(pack_file("/a/kimi.gguf", "/a", {}), "/a/kimi.gguf.kilin-pack");
}

TEST_F(PackPlacementOfTiny, AFolderThatCannotBeMadeIsAnErrorWithItsName) {
  try {
    place("/proc/no/such/folder", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Io);
    EXPECT_NE(std::string(error.what()).find("/proc/no"), std::string::npos) << error.what();
  }
  EXPECT_THROW(PackPlacement::parse(""), Error);
}

}  // namespace
}  // namespace kilin

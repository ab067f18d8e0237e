#include "weights/tensor_inventory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "support/configs.h"
#include "support/golden.h"
#include "weights/module_tree.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

ModelConfig published() { return ModelConfig::parse(testing::published_config().dump(), "config.json"); }

constexpr const char* kIndex = "model.safetensors.index.json";

// A copy of the small golden checkpoint, to be damaged.
class Inventory : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& entry : fs::directory_iterator(testing::in_repository("tests/golden/tiny-kimi-linear"))) {
      fs::copy_file(entry.path(), folder_ / entry.path().filename().string());
      fs::permissions(folder_ / entry.path().filename().string(), fs::perms::owner_write, fs::perm_options::add);
    }
    config_ = ModelConfig::read(folder_.path());
  }
  TensorInventory taken() { return take_inventory(open_weights_on_demand(folder_.path(), config_).get(), config_); }

  TemporaryFolder folder_;
  ModelConfig config_;
};

TEST(TensorInventory, WithoutWeightsItIsWhatTheConfigurationExpects) {
  const TensorInventory inventory = take_inventory(nullptr, published());
  EXPECT_EQ(inventory.count(Presence::Expected), 20'493u);
  EXPECT_EQ(inventory.tensors.size(), 20'493u);
  EXPECT_EQ(inventory.parameters(), 49'122'681'728u);
  EXPECT_EQ(inventory.bytes(), 98'245'528'576u);
}

TEST_F(Inventory, OfAWholeCheckpointAllIsStored) {
  const TensorInventory inventory = taken();
  EXPECT_EQ(inventory.count(Presence::Stored), 493u);
  EXPECT_EQ(inventory.bytes(), 7'622'848u);
  EXPECT_TRUE(inventory.surplus.empty());
  EXPECT_TRUE(inventory.unreadable_files.empty());
}

TEST_F(Inventory, OfAFolderWithoutWeightsThereIsNoStore) {
  for (const char* file : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", kIndex})
    fs::remove(folder_ / file);
  EXPECT_EQ(open_weights_on_demand(folder_.path(), config_), nullptr);
}

TEST_F(Inventory, AMissingShardIsSaidOnceAndTheOtherIsLookedAt) {
  fs::remove(folder_ / "model-00002-of-00002.safetensors");
  const TensorInventory inventory = taken();
  EXPECT_GT(inventory.count(Presence::Stored), 100u);
  EXPECT_GT(inventory.count(Presence::Unreadable), 100u);
  EXPECT_EQ(inventory.count(Presence::Stored) + inventory.count(Presence::Unreadable), 493u);
  ASSERT_EQ(inventory.unreadable_files.size(), 1u);
  EXPECT_NE(inventory.unreadable_files[0].find("model-00002-of-00002.safetensors"), std::string::npos);
}

TEST_F(Inventory, NamesWhatTheIndexDoesNotPromiseAndWhatHasNoPlace) {
  Json index = read_json(folder_ / kIndex);
  index["weight_map"]["model.layers.9.surprise"] = index["weight_map"]["model.norm.weight"];
  index["weight_map"].erase("model.norm.weight");
  std::ofstream(folder_ / kIndex) << index.dump();
  const TensorInventory inventory = taken();
  EXPECT_EQ(inventory.surplus, std::vector<std::string>{"model.layers.9.surprise"});
  for (const InventoryTensor& tensor : inventory.tensors)
    EXPECT_EQ(tensor.presence == Presence::Missing, tensor.name == "model.norm.weight") << tensor.name;
}

TEST_F(Inventory, AWrongShapeIsAFault) {
  Json config = read_json(folder_ / "config.json");
  config["kv_lora_rank"] = 65;
  config_ = ModelConfig::parse(config.dump(), "config.json");
  size_t faults = 0;
  for (const InventoryTensor& tensor : taken().tensors) faults += tensor.fault.empty() ? 0 : 1;
  EXPECT_EQ(faults, 2u * 3);  // in each MLA layer kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj
}

TEST_F(Inventory, OfOneLayerOpensItsOwnFilesOnly) {
  fs::remove(folder_ / "model-00002-of-00002.safetensors");
  const auto store = open_weights_on_demand(folder_.path(), config_);
  const TensorInventory inventory = take_inventory_of_layer(store.get(), config_, 0);
  EXPECT_EQ(inventory.count(Presence::Stored), inventory.tensors.size());
  EXPECT_TRUE(inventory.surplus.empty());
}

// Sums over leaves must be those of the root.
size_t leaves(const ModuleNode& node) {
  size_t n = node.tensor != nullptr ? 1 : 0;
  for (const ModuleNode& child : node.children) n += leaves(child);
  return n;
}

const ModuleNode* find(const ModuleNode& node, std::string_view name) {
  for (const ModuleNode& child : node.children) {
    if (child.name == name) return &child;
    if (const ModuleNode* found = find(child, name)) return found;
  }
  return nullptr;
}

TEST(ModuleTree, LayersAndExpertsThatLookAlikeAreOneNode) {
  const TensorInventory inventory = take_inventory(nullptr, published());
  const ModuleNode root = module_tree(inventory, Alike::Together);
  EXPECT_EQ(root.tensors, 20'493u);
  EXPECT_EQ(root.parameters, 49'122'681'728u);
  const ModuleNode* layers = find(root, "layers");
  ASSERT_NE(layers, nullptr);
  ASSERT_EQ(layers->children.size(), 3u);
  EXPECT_EQ(layers->children[0].name, "0");
  EXPECT_EQ(layers->children[1].name, "1-2,4-6,8-10,12-14,16-18,20-22,24-25");
  EXPECT_EQ(layers->children[2].name, "3,7,11,15,19,23,26");
  EXPECT_EQ(layers->children[1].count, 19u);
  EXPECT_EQ(layers->children[0].tensors + layers->children[1].tensors + layers->children[2].tensors, layers->tensors);
  const ModuleNode* experts = find(layers->children[2], "experts");
  ASSERT_NE(experts, nullptr);
  ASSERT_EQ(experts->children.size(), 1u);
  EXPECT_EQ(experts->children[0].name, "0-255");
  EXPECT_EQ(experts->children[0].tensors, 3u * 256);
  EXPECT_EQ(find(root, "model")->kind, "KimiLinearForCausalLM");
  EXPECT_EQ(find(root, "block_sparse_moe")->kind, "KimiMoe");
  EXPECT_EQ(find(root, "gate")->kind, "");
  EXPECT_EQ(find(root, "self_attn")->kind, "KimiDeltaAttention");
  EXPECT_EQ(find(layers->children[2], "self_attn")->kind, "KimiMlaAttention");
}

TEST(ModuleTree, ApartHasALeafForEachTensorAndTheNumbersAscend) {
  const TensorInventory inventory = take_inventory(nullptr, published());
  const ModuleNode root = module_tree(inventory, Alike::Apart);
  EXPECT_EQ(leaves(root), 20'493u);
  const ModuleNode* layers = find(root, "layers");
  ASSERT_EQ(layers->children.size(), 27u);
  for (size_t layer = 0; layer < 27; ++layer) EXPECT_EQ(layers->children[layer].name, std::to_string(layer));
}

TEST_F(Inventory, ModulesOfWhichOneIsNotWholeAreNotAlike) {
  Json index = read_json(folder_ / kIndex);
  index["weight_map"].erase("model.layers.2.block_sparse_moe.experts.5.w1.weight");
  std::ofstream(folder_ / kIndex) << index.dump();
  fs::remove(folder_ / "model-00001-of-00002.safetensors");
  const TensorInventory inventory = taken();
  const ModuleNode root = module_tree(inventory, Alike::Together);
  const ModuleNode* layer = find(*find(root, "layers"), "2");
  ASSERT_NE(layer, nullptr);
  const ModuleNode* experts = find(*layer, "experts");
  ASSERT_EQ(experts->children.size(), 2u);
  EXPECT_EQ(experts->children[0].name, "0-4,6-15");
  EXPECT_EQ(experts->children[1].name, "5");
}

}  // namespace
}  // namespace kilin

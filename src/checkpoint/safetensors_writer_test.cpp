#include "checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/json.h"
#include "core/random.h"
#include "support/compare.h"
#include "support/golden.h"

namespace kilin {
namespace {

using testing::TemporaryFolder;

// Mixed widths and odd sizes, so that only an ordered file is aligned.
std::vector<SafetensorsWriter::Planned> mixed_plan() {
  return {{"b", DType::bf16, {3, 5}}, {"a", DType::f32, {7}},       {"e", DType::u8, {3}},      {"none", DType::f32, {0, 4}},
          {"c", DType::bf16, {1}},    {"d", DType::f64, {2, 1, 2}}, {"scalar", DType::f32, {}}, {"none2", DType::u8, {0}}};
}

std::vector<std::byte> content(const SafetensorsWriter::Planned& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(random_bits(tensor.name[0], i));
  return bytes;
}

TEST(SafetensorsWriter, WhatIsWrittenIsReadBackWhateverTheSizeOfShards) {
  for (uint64_t shard_bytes : {uint64_t{0}, uint64_t{1}, uint64_t{30}, uint64_t{40}, uint64_t{1} << 40}) {
    TemporaryFolder folder;
    SafetensorsWriter writer(folder / "new", mixed_plan(), shard_bytes);
    for (const auto& tensor : writer.tensors()) writer.write(tensor.name, content(tensor));
    writer.commit();
    const auto checkpoint = Checkpoint::open(folder / "new");
    EXPECT_EQ(checkpoint->names().size(), 8u);
    EXPECT_EQ(checkpoint->shards().size() == 1, shard_bytes == uint64_t{1} << 40);
    for (const auto& tensor : mixed_plan()) {
      const StoredTensor stored = checkpoint->require(tensor.name);
      EXPECT_EQ(stored.format, tensor.dtype) << tensor.name;
      EXPECT_EQ(stored.shape, tensor.shape) << tensor.name;
      EXPECT_BYTES_EQ(stored.bytes, content(tensor)) << tensor.name;
    }
  }
}

TEST(SafetensorsWriter, NoShardHoldsMoreThanItsLimitUnlessOneTensorDoes) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder.path(), mixed_plan(), 31);
  for (const auto& tensor : writer.tensors()) writer.write(tensor.name, content(tensor));
  writer.commit();
  const auto checkpoint = Checkpoint::open(folder.path());
  std::map<std::string, std::pair<size_t, size_t>> shards;  // bytes, tensors that have some
  for (const auto& name : checkpoint->names()) {
    auto& [bytes, tensors] = shards[checkpoint->shard_of(name)];
    bytes += checkpoint->require(name).bytes.size();
    tensors += checkpoint->require(name).bytes.empty() ? 0 : 1;
  }
  for (const auto& [file, shard] : shards) EXPECT_TRUE(shard.first <= 31 || shard.second == 1) << file;
}

TEST(SafetensorsWriter, TheIndexSaysTotals) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder.path(), {{"a", DType::bf16, {3, 5}}, {"b", DType::f32, {7}}}, 1);
  for (const auto& tensor : writer.tensors()) writer.write(tensor.name, content(tensor));
  writer.commit();
  const Json index = read_json(folder / "model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], 58);
  EXPECT_EQ(index["metadata"]["total_parameters"], 22);
  EXPECT_EQ(index["weight_map"]["a"], "model-00001-of-00002.safetensors");
  EXPECT_EQ(index["weight_map"]["b"], "model-00002-of-00002.safetensors");
}

TEST(SafetensorsWriter, TakesATensorInPieces) {
  TemporaryFolder folder;
  const SafetensorsWriter::Planned planned{"x", DType::f32, {9}};
  SafetensorsWriter writer(folder.path(), {planned}, 1000);
  const auto bytes = content(planned);
  for (size_t i = 0; i < bytes.size(); i += 10)
    writer.write("x", std::span(bytes).subspan(i, std::min<size_t>(10, bytes.size() - i)));
  writer.commit();
  EXPECT_BYTES_EQ(Checkpoint::open(folder.path())->require("x").bytes, bytes);
}

TEST(SafetensorsWriter, HoldsTheCallerToThePlanAndLeavesNothingBehind) {
  TemporaryFolder folder;
  {
    SafetensorsWriter writer(folder.path(), {{"a", DType::u8, {4}}, {"b", DType::u8, {4}}}, 4);
    const std::vector<std::byte> bytes(5);
    EXPECT_THROW(writer.write("b", std::span(bytes).first(4)), Error);  // a's turn
    EXPECT_THROW(writer.write("a", bytes), Error);                      // too many
    writer.write("a", std::span(bytes).first(4));
    EXPECT_THROW(writer.commit(), Error);  // b is missing
    writer.write("b", std::span(bytes).first(3));
    EXPECT_THROW(writer.commit(), Error);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsWriter, RefusesNamesThatStandTwiceAndAFolderThatHoldsACheckpoint) {
  TemporaryFolder folder;
  EXPECT_THROW(SafetensorsWriter(folder.path(), {{"a", DType::u8, {1}}, {"a", DType::u8, {1}}}, 10), Error);
  EXPECT_THROW(SafetensorsWriter(folder.path(), {{"__metadata__", DType::u8, {1}}}, 10), Error);
  std::ofstream(folder / "model.safetensors") << "x";
  EXPECT_THROW(SafetensorsWriter(folder.path(), {{"a", DType::u8, {1}}}, 10), Error);
}

}  // namespace
}  // namespace kilin

#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "checkpoint/safetensors_writer.h"
#include "core/error.h"
#include "core/json.h"
#include "support/compare.h"
#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// Four tensors a, b, c, d of 8 bytes in two shards: {a, b} and {c, d}.
void write_two_shards(const fs::path& folder) {
  std::vector<SafetensorsWriter::Planned> plan;
  for (const char* name : {"a", "b", "c", "d"}) plan.push_back({name, DType::f32, {2}});
  SafetensorsWriter writer(folder, plan, 16);
  for (const auto& tensor : writer.tensors()) {
    const float values[2] = {static_cast<float>(tensor.name[0]), 1.0f};
    writer.write(tensor.name, std::as_bytes(std::span(values)));
  }
  writer.commit();
}

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

void edit_index(const fs::path& folder, const std::function<void(Json&)>& edit) {
  Json index = read_json(folder / "model.safetensors.index.json");
  edit(index);
  std::ofstream(folder / "model.safetensors.index.json") << index.dump();
}

// The error that opening gives, which must name all the words.
void expect_error(const fs::path& folder, ErrorCode code, const std::vector<std::string>& words) {
  try {
    Checkpoint::open(folder);
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), code) << message;
    for (const auto& word : words) EXPECT_NE(message.find(word), std::string::npos) << "no \"" << word << "\" in: " << message;
  }
}

TEST(Checkpoint, FindsTensorsOfAllShardsByNameInOrder) {
  TemporaryFolder folder;
  write_two_shards(folder.path());
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint->names(), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(checkpoint->shards(), (std::vector<std::string>{kFirst, kSecond}));
  EXPECT_EQ(checkpoint->shard_of("c"), kSecond);
  const StoredTensor c = checkpoint->require("c");
  EXPECT_EQ(*reinterpret_cast<const float*>(c.bytes.data()), 99.0f);
  EXPECT_NE(c.file.find(kSecond), std::string::npos);
  EXPECT_FALSE(checkpoint->find("e"));
  EXPECT_THROW(checkpoint->require("e"), Error);
  EXPECT_THROW(checkpoint->shard_of("e"), Error);
}

TEST(Checkpoint, SaysWhatAFolderLacks) {
  TemporaryFolder folder;
  expect_error(folder / "no", ErrorCode::NotFound, {"no such folder"});
  expect_error(folder.path(), ErrorCode::NotFound, {"model.safetensors", "index.json"});
  write_two_shards(folder.path());
  fs::copy(folder / kFirst, folder / "model.safetensors");
  expect_error(folder.path(), ErrorCode::Corrupt, {"both"});
}

TEST(Checkpoint, AMissingShardIsNamed) {
  TemporaryFolder folder;
  write_two_shards(folder.path());
  fs::remove(folder / kSecond);
  expect_error(folder.path(), ErrorCode::NotFound, {kSecond, "missing"});
}

TEST(Checkpoint, OnDemandReadsWhatIsThereAndNamesTheShardThatIsNot) {
  TemporaryFolder folder;
  write_two_shards(folder.path());
  fs::remove(folder / kFirst);
  const auto checkpoint = Checkpoint::open(folder.path(), Checkpoint::Shards::OnDemand);
  EXPECT_EQ(checkpoint->names().size(), 4u);
  EXPECT_EQ(*reinterpret_cast<const float*>(checkpoint->require("d").bytes.data()), 100.0f);
  try {
    checkpoint->find("a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::NotFound);
    EXPECT_NE(std::string(error.what()).find(kFirst), std::string::npos);
  }
}

TEST(Checkpoint, AShardWithoutAPromisedTensorIsCorrupt) {
  TemporaryFolder folder;
  write_two_shards(folder.path());
  edit_index(folder.path(), [](Json& index) { index["weight_map"]["missing.weight"] = kSecond; });
  expect_error(folder.path(), ErrorCode::Corrupt, {kSecond, "missing.weight", "lacks 1 of the 3"});
}

TEST(Checkpoint, ATensorThatTheIndexDoesNotNameIsCorrupt) {
  TemporaryFolder folder;
  write_two_shards(folder.path());
  edit_index(folder.path(), [](Json& index) { index["weight_map"].erase("b"); });
  expect_error(folder.path(), ErrorCode::Corrupt, {kFirst, "does not name", "b"});
}

TEST(Checkpoint, ATensorInTwoShardsIsCorrupt) {
  TemporaryFolder folder;
  write_two_shards(folder.path());
  fs::remove(folder / kSecond);
  fs::copy(folder / kFirst, folder / kSecond);  // holds a and b again
  edit_index(folder.path(), [](Json& index) { index["weight_map"] = {{"a", kFirst}, {"b", kSecond}}; });
  expect_error(folder.path(), ErrorCode::Corrupt, {"'b'", kFirst, kSecond});
}

TEST(Checkpoint, AnIndexMayNotLeaveItsFolder) {
  TemporaryFolder folder;
  for (const char* name : {"../model.safetensors", "/etc/model.safetensors", "a/b.safetensors", "a\\\\b.safetensors", "..", "",
                           "model.bin", "\\u0000.safetensors"}) {
    std::ofstream(folder / "model.safetensors.index.json") << R"({"weight_map":{"x":")" << name << "\"}}";
    expect_error(folder.path(), ErrorCode::Corrupt, {"'x'", "same folder"});
  }
}

TEST(Checkpoint, AnIndexOfAnotherFormIsCorrupt) {
  TemporaryFolder folder;
  for (const char* text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"x":1}})",
                           R"({"weight_map":{"x":null}})", R"({"weight_map":{"x":"a.safetensors","x":"b.safetensors"}})"}) {
    std::ofstream(folder / "model.safetensors.index.json") << text;
    expect_error(folder.path(), ErrorCode::Corrupt, {"model.safetensors.index.json"});
  }
}

TEST(Checkpoint, ManyThreadsMayOpenShardsAtOnce) {
  TemporaryFolder folder;
  write_two_shards(folder.path());
  const auto checkpoint = Checkpoint::open(folder.path(), Checkpoint::Shards::OnDemand);
  std::vector<std::thread> threads;
  std::array<float, 4> got{};
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      got[i] = *reinterpret_cast<const float*>(checkpoint->require(std::string(1, static_cast<char>('a' + i))).bytes.data());
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(got, (std::array<float, 4>{97, 98, 99, 100}));
}

TEST(Checkpoint, OpensTheGoldenCheckpointWhole) {
  GOLDEN_OR_SKIP(path, "tiny-kimi-linear");
  const auto checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint->names().size(), 493u);
  size_t bytes = 0;
  for (const auto& name : checkpoint->names()) bytes += checkpoint->require(name).bytes.size();
  EXPECT_EQ(bytes, 7622848u);
  EXPECT_EQ(checkpoint->require("model.layers.0.self_attn.A_log").shape, (Shape{1, 1, 4, 1}));
  EXPECT_EQ(checkpoint->require("model.layers.0.self_attn.A_log").format, DType::f32);
}

TEST(Checkpoint, OpensTheEmbeddedModel) {
  const auto checkpoint = Checkpoint::open(testing::in_repository("models/tiny"));
  EXPECT_EQ(checkpoint->require("lm_head.weight").shape, (Shape{4096, 256}));
  EXPECT_EQ(checkpoint->shards(), std::vector<std::string>{"model.safetensors"});
}

}  // namespace
}  // namespace kilin

#include "synthetic/synthetic_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "support/golden.h"
#include "text/tokenizer.h"
#include "weights/weight_map.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

SyntheticCheckpoint small() {
  SyntheticCheckpoint checkpoint;
  checkpoint.config = testing::in_repository("tests/golden/tiny-kimi-linear/config.json");
  checkpoint.shape = {.layers = 3, .experts = 4};
  return checkpoint;
}

SyntheticCheckpoint::Size write(const SyntheticCheckpoint& checkpoint, const fs::path& out, size_t threads = 2) {
  ThreadPool pool(threads);
  return checkpoint.write(out, pool);
}

// Name -> bytes of every file.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files.emplace(entry.path().filename().string(), entry.is_directory() ? "folder" : read_file(entry.path()));
  return files;
}

void put(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

ErrorCode code_of(const SyntheticCheckpoint& checkpoint, const fs::path& out) {
  try {
    write(checkpoint, out);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::Io;
}

TEST(SyntheticCheckpoint, HoldsTheTensorsOfItsConfiguration) {
  for (DType dtype : {DType::bf16, DType::f32}) {
    TemporaryFolder folder;
    SyntheticCheckpoint checkpoint = small();
    checkpoint.shape.dtype = dtype;
    const auto size = write(checkpoint, folder / "new");
    const ModelConfig config = ModelConfig::read(folder / "new");
    EXPECT_EQ(config.num_hidden_layers, 3u);
    const auto store = Checkpoint::open(folder / "new");
    check_tensors(*store, config);
    EXPECT_EQ(size.tensors, store->names().size());
    uint64_t bytes = 0;
    for (const std::string& name : store->names()) bytes += store->require(name).bytes.size();
    EXPECT_EQ(size.bytes, bytes);
    EXPECT_EQ(store->require("lm_head.weight").format, dtype);
    EXPECT_EQ(store->require("model.layers.0.self_attn.A_log").format, DType::f32);
  }
}

TEST(SyntheticCheckpoint, TheNumberOfThreadsChangesNoByteAndTheSeedDoes) {
  TemporaryFolder folder;
  SyntheticCheckpoint checkpoint = small();
  checkpoint.seed = 7;
  write(checkpoint, folder / "a", 1);
  write(checkpoint, folder / "b", 3);
  EXPECT_EQ(files_of(folder / "a"), files_of(folder / "b"));
  checkpoint.seed = 8;
  write(checkpoint, folder / "c", 3);
  EXPECT_EQ(files_of(folder / "a").at("config.json"), files_of(folder / "c").at("config.json"));
  EXPECT_NE(files_of(folder / "a").at("model.safetensors"), files_of(folder / "c").at("model.safetensors"));
}

TEST(SyntheticCheckpoint, ShardsHoldWholeLayersAndTheSameValues) {
  TemporaryFolder folder;
  SyntheticCheckpoint checkpoint = small();
  write(checkpoint, folder / "one");
  checkpoint.max_shard_bytes = 300'000;
  write(checkpoint, folder / "many");
  const auto one = Checkpoint::open(folder / "one"), many = Checkpoint::open(folder / "many");
  EXPECT_GT(many->shards().size(), 2u);
  ASSERT_EQ(one->names(), many->names());
  for (const std::string& name : one->names()) {
    const auto a = one->require(name), b = many->require(name);
    EXPECT_TRUE(std::ranges::equal(a.bytes, b.bytes)) << name;
  }
  EXPECT_EQ(many->shard_of("model.embed_tokens.weight"), many->shards().front());
  EXPECT_EQ(many->shard_of("lm_head.weight"), many->shards().back());
}

TEST(SyntheticCheckpoint, ProgressEndsAtAllBytes) {
  TemporaryFolder folder;
  ThreadPool pool(1);
  uint64_t last = 0, all = 0;
  const auto size = small().write(folder / "new", pool, [&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  });
  EXPECT_EQ(last, size.bytes);
  EXPECT_EQ(all, size.bytes);
}

TEST(SyntheticCheckpoint, AFolderThatHoldsSomethingIsLeftAsItIs) {
  TemporaryFolder folder;
  put(folder / "notes.txt", "mine");
  EXPECT_EQ(code_of(small(), folder.path()), ErrorCode::InvalidArgument);
  EXPECT_EQ(files_of(folder.path()), (std::map<std::string, std::string>{{"notes.txt", "mine"}}));
  EXPECT_EQ(code_of(small(), folder / "notes.txt"), ErrorCode::InvalidArgument);
}

TEST(SyntheticCheckpoint, ReplacingTakesTheOldCheckpointAndNothingElse) {
  TemporaryFolder folder;
  SyntheticCheckpoint checkpoint = small();
  checkpoint.max_shard_bytes = 300'000;
  write(checkpoint, folder / "m");
  put(folder / "m/notes.txt", "mine");
  put(folder / "m/tiktoken.model", "of another vocabulary");
  checkpoint.max_shard_bytes = 1 << 30;
  checkpoint.existing = SyntheticCheckpoint::Existing::Replace;
  write(checkpoint, folder / "m");
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files_of(folder / "m")) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"config.json", "model.safetensors", "notes.txt"}));
  EXPECT_EQ(files_of(folder / "m").at("notes.txt"), "mine");
}

TEST(SyntheticCheckpoint, WhatAnInterruptedRunLeftIsNoCheckpoint) {
  TemporaryFolder folder;
  fs::create_directories(folder / "m/.synth-partial");
  put(folder / "m/.synth-partial/model.safetensors", "half");
  write(small(), folder / "m");
  EXPECT_EQ(files_of(folder / "m").size(), 2u);
}

TEST(SyntheticCheckpoint, OfTwoIntoOneFolderTheFirstWins) {
  TemporaryFolder folder;
  ThreadPool pool(1);
  for (const auto existing : {SyntheticCheckpoint::Existing::Refuse, SyntheticCheckpoint::Existing::Replace}) {
    SyntheticCheckpoint second = small();
    second.seed = 9;
    second.existing = existing;
    bool tried = false;
    SyntheticCheckpoint first = small();
    first.existing = existing;
    first.write(folder / "m", pool, [&](uint64_t, uint64_t) {
      if (std::exchange(tried, true)) return;
      EXPECT_EQ(code_of(second, folder / "m"), ErrorCode::Io);
    });
    EXPECT_TRUE(tried);
    write(small(), folder / "alone");
    EXPECT_EQ(files_of(folder / "m"), files_of(folder / "alone"));
    fs::remove_all(folder / "alone");
  }
}

TEST(SyntheticCheckpoint, ErrorsNameTheFolderThatWasAskedFor) {
  TemporaryFolder folder;
  ThreadPool pool(1);
  try {
    small().write(folder / "m", pool, [&](uint64_t, uint64_t) { fs::remove_all(folder / "m"); });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with((folder / "m/").string())) << error.what();
    EXPECT_EQ(std::string(error.what()).find("partial"), std::string::npos) << error.what();
  }
}

TEST(SyntheticCheckpoint, CopiesATokenizerThatFitsTheEmbedding) {
  TemporaryFolder folder;
  SyntheticCheckpoint checkpoint = small();
  checkpoint.tokenizer = testing::in_repository("models/tiny");  // 4096 tokens; the embedding has 512 rows
  EXPECT_EQ(code_of(checkpoint, folder / "m"), ErrorCode::Unsupported);
  EXPECT_FALSE(fs::exists(folder / "m"));
  checkpoint.config = testing::in_repository("models/tiny");
  write(checkpoint, folder / "m");
  EXPECT_EQ(Tokenizer::load(folder / "m").encode("Call me Ishmael."),
            Tokenizer::load(testing::in_repository("models/tiny")).encode("Call me Ishmael."));
}

TEST(SyntheticCheckpoint, ADiskWithoutRoomIsNoticedBeforeAnythingIsWritten) {
  TemporaryFolder folder;
  Json config = read_json(small().config);
  config["vocab_size"] = 1 << 24;
  config["hidden_size"] = 1 << 17;  // 8 TB of embeddings
  put(folder / "config.json", config.dump());
  SyntheticCheckpoint checkpoint = small();
  checkpoint.config = folder / "config.json";
  EXPECT_EQ(code_of(checkpoint, folder / "m"), ErrorCode::ResourceExhausted);
  EXPECT_FALSE(fs::exists(folder / "m"));
}

}  // namespace
}  // namespace kilin

#include "model/pack_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "model/kimi_linear_for_causal_lm.h"
#include "support/compare.h"
#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// A copy of models/tiny that a test may change, and the packs of its layer 1.
class PackCache : public ::testing::Test {
 protected:
  PackCache() {
    for (const auto& file : fs::directory_iterator(testing::in_repository("models/tiny")))
      if (file.is_regular_file()) fs::copy(file, folder_ / file.path().filename().string());
  }

  fs::path model() const { return folder_.path(); }
  fs::path file() const { return folder_ / "packs"; }

  PackOrigin origin(QuantType type = QuantType::q8_0) const {
    return {.sources = Checkpoint::open(model())->files(), .quantize = type};
  }

  struct Load {
    std::vector<std::byte> packs;
    bool found;  // in the file
  };
  Load load(const PackOrigin& origin) const {
    const ModelConfig config = ModelConfig::read(model());
    PackOptions options;
    options.quantize = origin.quantize;
    options.place = [&](const PackPlan& plan) { return packs_in_file(file(), plan, origin); };
    WeightSource source = WeightSource::open_layer(Checkpoint::open(model()), config, 1, options);
    const bool found = source.packs()->is_complete();
    KimiDecoderLayer::load(source, config, 1, 1);
    source.finish();
    const std::byte* data = source.packs()->data();
    return {{data, data + source.plan()->bytes()}, found};
  }
  Load load() const { return load(origin()); }

  TemporaryFolder folder_;
};

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

TEST_F(PackCache, WhatOneLoadPackedTheNextOneMaps) {
  const Load first = load();
  EXPECT_FALSE(first.found);
  const Load second = load();
  EXPECT_TRUE(second.found);
  EXPECT_BYTES_EQ(second.packs, first.packs);
}

TEST_F(PackCache, AnotherOriginIsMadeAnew) {
  load();
  EXPECT_TRUE(load(origin(QuantType::q8_0)).found);
  EXPECT_FALSE(load(origin(QuantType::q4_0)).found);
  EXPECT_FALSE(load(origin(QuantType::q8_0)).found);
}

TEST_F(PackCache, AWeightFileThatWasTouchedOrGrewIsPackedAnew) {
  load();
  const fs::path weights = origin().sources.front();
  const auto time = fs::last_write_time(weights);
  fs::last_write_time(weights, time + std::chrono::nanoseconds(1000));
  EXPECT_FALSE(load().found);
  EXPECT_TRUE(load().found);
  fs::last_write_time(weights, time);
  EXPECT_FALSE(load().found);
}

TEST_F(PackCache, TornCutAndForeignFilesAreMadeAnewAndAgree) {
  const Load first = load();
  const std::string good = bytes_of(file());
  const auto head = [&](size_t at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    return bad;
  };
  for (const std::string& bad : {std::string(), std::string("kilinpak"), good.substr(0, good.size() - 1), good + "x",
                                 good.substr(0, 4096), std::string(good.size(), '\0'), head(0), head(8), head(12), head(40)}) {
    write_bytes(file(), bad);
    const Load again = load();
    EXPECT_FALSE(again.found) << bad.size();
    EXPECT_BYTES_EQ(again.packs, first.packs);
    EXPECT_TRUE(bytes_of(file()) == good) << bad.size();
  }
  EXPECT_TRUE(load().found);
}

TEST_F(PackCache, EveryByteOfHeaderAndTableCounts) {
  load();
  const std::string good = bytes_of(file());
  const ModelConfig config = ModelConfig::read(model());
  const auto store = Checkpoint::open(model());
  const PackPlan plan = PackPlan::of_layer(*store, config, 1, QuantType::q8_0);
  const size_t head = pack_cache_head(plan, origin()).size();
  EXPECT_EQ(head % 4096, 0u);
  EXPECT_EQ(good.size(), head + plan.bytes());
  const auto put = [&](size_t at, char byte) {
    std::fstream out(file(), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at)).put(byte);
  };
  for (size_t at = 0; at < head; ++at) {
    put(at, static_cast<char>(good[at] + 1));
    EXPECT_FALSE(packs_in_file(file(), plan, origin())->is_complete()) << at;
    put(at, good[at]);
  }
  EXPECT_TRUE(packs_in_file(file(), plan, origin())->is_complete());
}

TEST_F(PackCache, ALoadThatFailsLeavesNoFile) {
  const ModelConfig config = ModelConfig::read(model());
  PackOptions options;
  options.quantize = QuantType::q8_0;
  options.place = [&](const PackPlan& plan) { return packs_in_file(file(), plan, origin()); };
  options.progress = [](uint64_t, uint64_t) { throw std::runtime_error("interrupted"); };
  const auto files = std::distance(fs::directory_iterator(model()), {});
  EXPECT_THROW(
      {
        WeightSource source = WeightSource::open_layer(Checkpoint::open(model()), config, 1, options);
        KimiDecoderLayer::load(source, config, 1, 1);
      },
      std::runtime_error);
  EXPECT_EQ(std::distance(fs::directory_iterator(model()), {}), files);
}

TEST_F(PackCache, TwoLoadsAtOnceDoNotDisturbEachOther) {
  const ModelConfig config = ModelConfig::read(model());
  PackOptions options;
  options.quantize = QuantType::q8_0;
  options.place = [&](const PackPlan& plan) { return packs_in_file(file(), plan, origin()); };
  WeightSource a = WeightSource::open_layer(Checkpoint::open(model()), config, 1, options);
  WeightSource b = WeightSource::open_layer(Checkpoint::open(model()), config, 1, options);
  for (WeightSource* source : {&a, &b}) KimiDecoderLayer::load(*source, config, 1, 1);
  b.finish();
  a.finish();
  const auto bytes = [](const WeightSource& source) { return std::span(source.packs()->data(), source.plan()->bytes()); };
  EXPECT_BYTES_EQ(bytes(a), bytes(b));
  EXPECT_TRUE(load().found);
}

}  // namespace
}  // namespace kilin

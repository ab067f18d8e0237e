#include "weights/pack_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "support/compare.h"
#include "support/golden.h"
#include "weights/weight_map.h"
#include "weights/weight_source.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// Takes every tensor of a layer, as its modules do.
void take_layer(WeightSource& source, const ModelConfig& config, size_t layer) {
  for (const ExpectedTensor& tensor : expected_tensors_of_layer(config, layer)) {
    if (source.plan()->find(tensor.name) != nullptr)
      source.matrix(tensor.name, tensor.shape[0], tensor.shape[1]);
    else
      source.vector(tensor.name, tensor.shape.elements());
  }
}

// A copy of models/tiny that a test may change, and the packs of its layer 1.
class PackCache : public ::testing::Test {
 protected:
  PackCache() {
    for (const auto& file : fs::directory_iterator(testing::in_repository("models/tiny")))
      if (file.is_regular_file()) fs::copy(file, folder_ / file.path().filename().string());
  }

  fs::path model() const { return folder_.path(); }
  fs::path file() const { return folder_ / "packs"; }

  PackOrigin origin(QuantType type = QuantType::q8_0) const { return {.weights = Checkpoint::open(model()), .quantize = type}; }

  struct Load {
    std::vector<std::byte> packs;
    bool found;  // in the file
  };
  Load load(const PackOrigin& origin, PackCheck check = PackCheck::Head) const {
    const ModelConfig config = ModelConfig::read(model());
    PackOptions options;
    options.quantize = origin.quantize;
    options.place = [&](const PackPlan& plan) { return packs_in_file(file(), plan, origin, check); };
    WeightSource source = WeightSource::open_layer(Checkpoint::open(model()), config, 1, options);
    const bool found = source.packs()->is_complete();
    take_layer(source, config, 1);
    source.finish();
    const std::byte* data = source.packs()->data();
    return {{data, data + source.plan()->bytes()}, found};
  }
  Load load() const { return load(origin()); }

  // All matrices of the model: some huge pages, of which the last is not full.
  PackPlan whole_plan() const { return PackPlan::of(*Checkpoint::open(model()), ModelConfig::read(model()), QuantType::q8_0); }

  TemporaryFolder folder_;
};

// Files are not written beyond `bytes` while it lives, as if the disk were full.
class MostFileBytes {
 public:
  explicit MostFileBytes(uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~MostFileBytes() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  MostFileBytes(const MostFileBytes&) = delete;
  MostFileBytes& operator=(const MostFileBytes&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
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
  const fs::path weights = model() / "model.safetensors";
  const auto time = fs::last_write_time(weights);
  fs::last_write_time(weights, time + std::chrono::nanoseconds(1000));
  EXPECT_FALSE(load().found);
  EXPECT_TRUE(load().found);
  fs::last_write_time(weights, time);
  EXPECT_FALSE(load().found);
}

// Other weights in files of the same name, length and time: cp --preserve, rsync -t and tar leave such.
TEST_F(PackCache, OtherWeightsUnderAnOldNameAndTimeArePackedAnew) {
  const fs::path weights = model() / "model.safetensors", other = folder_ / "other.safetensors";
  const std::string good = bytes_of(weights);
  std::string bytes = good;
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 4096; i += 2) bytes[i] = static_cast<char>(bytes[i] ^ 1);
  const auto time = fs::last_write_time(weights);
  const Load first = load();
  write_bytes(weights, bytes);  // in place
  fs::last_write_time(weights, time);
  EXPECT_FALSE(load().found);
  EXPECT_TRUE(load().found);
  write_bytes(other, good);
  fs::last_write_time(other, time);
  fs::rename(other, weights);
  const Load again = load();
  EXPECT_FALSE(again.found);
  EXPECT_BYTES_EQ(again.packs, first.packs);
}

TEST_F(PackCache, AFileThatIsReplacedAfterItWasMappedIsKnownByWhatWasMapped) {
  const fs::path weights = model() / "model.safetensors", other = folder_ / "other.safetensors";
  const PackOrigin before = origin();
  fs::copy(weights, other);
  fs::rename(other, weights);
  load(before);
  EXPECT_FALSE(load().found);
}

TEST_F(PackCache, EachBitThatRottedIsFoundByItsMatrixAndMadeAnewWhereAsked) {
  const Load first = load();
  const std::string good = bytes_of(file());
  const auto store = Checkpoint::open(model());
  const PackPlan plan = PackPlan::of_layer(*store, ModelConfig::read(model()), 1, QuantType::q8_0);
  const size_t head = pack_cache_head(plan, origin()).size();
  ThreadPool pool(2);
  EXPECT_EQ(damaged_packs(file(), plan, origin(), &pool), std::vector<std::string>{});
  std::vector<size_t> places = {good.size() - 1};  // of a checksum
  for (const PlannedPack& pack : plan.packs()) places.push_back(head + pack.offset + pack.bytes / 2);
  for (size_t i = 0; i < places.size(); ++i) {
    std::string bad = good;
    bad[places[i]] = static_cast<char>(bad[places[i]] ^ 16);
    write_bytes(file(), bad);
    const std::string& name = i == 0 ? plan.packs().back().name : plan.packs()[i - 1].name;
    EXPECT_EQ(damaged_packs(file(), plan, origin(), i % 2 == 0 ? &pool : nullptr), std::vector{name});
  }
  EXPECT_TRUE(load().found) << "the head alone is looked at";
  const Load checked = load(origin(), PackCheck::Checksums);
  EXPECT_FALSE(checked.found);
  EXPECT_BYTES_EQ(checked.packs, first.packs);
  EXPECT_TRUE(bytes_of(file()) == good);
  EXPECT_TRUE(load(origin(), PackCheck::Checksums).found);
  EXPECT_EQ(damaged_packs(file(), plan, origin(QuantType::q4_0)), std::nullopt) << "not of this load";
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
  EXPECT_EQ(good.size(), head + plan.bytes() + 8 * plan.packs().size());
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
        take_layer(source, config, 1);
      },
      std::runtime_error);
  EXPECT_EQ(std::distance(fs::directory_iterator(model()), {}), files);
}

TEST_F(PackCache, ItsBytesDoNotDependOnTheSizesAndTheOrderOfWrites) {
  const PackPlan plan = whole_plan();
  ASSERT_GT(plan.bytes(), 2 * kHugePage);
  std::vector<std::byte> data(plan.bytes());
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(1 + i * 31 % 255);
  const auto head = pack_cache_head(plan, origin());
  ThreadPool pool(3);
  for (const size_t piece : {size_t{1} << 14, size_t{166'144}, kHugePage, 2 * kHugePage + 64, data.size()}) {
    fs::remove(file());
    const auto packs = packs_in_file(file(), plan, origin());
    const auto shown = std::span(packs->data(), data.size());
    EXPECT_EQ(std::ranges::count(shown, std::byte{0}), data.size()) << "what nobody wrote";
    const size_t pieces = (data.size() + piece - 1) / piece;
    pool.parallel_for(pieces, 1, [&](const Slice& s) {
      const size_t at = s.begin * 7 % pieces * piece;  // neighbours meet in one huge page at any time
      packs->write(at, std::span(data).subspan(at, std::min(piece, data.size() - at)));
    });
    ASSERT_NE(pieces % 7, 0u) << "some pieces were not written";
    EXPECT_BYTES_EQ(shown, data) << "before the commit, by " << piece;
    for (const PlannedPack& pack : plan.packs()) packs->seal(pack.offset, pack.bytes);
    packs->commit();
    const std::string all = bytes_of(file());
    EXPECT_BYTES_EQ(std::as_bytes(std::span(all)).first(head.size()), head);
    EXPECT_BYTES_EQ(std::as_bytes(std::span(all)).subspan(head.size(), data.size()), data);
    EXPECT_EQ(damaged_packs(file(), plan, origin()), std::vector<std::string>{});
    const auto again = packs_in_file(file(), plan, origin());
    EXPECT_TRUE(again->is_complete());
    EXPECT_BYTES_EQ(std::span(again->data(), data.size()), data);
  }
}

TEST_F(PackCache, AFullDiskIsAnErrorWithTheFilesNameAndLeavesNone) {
  const PackPlan plan = whole_plan();
  const std::vector<std::byte> data(plan.bytes(), std::byte{7});
  const auto files = std::distance(fs::directory_iterator(model()), {});
  for (const uint64_t most : {kHugePage / 2, kHugePage, kHugePage + 5000}) {
    auto packs = packs_in_file(file(), plan, origin());
    try {
      const MostFileBytes full(most);
      packs->write(kHugePage, std::span(data).first(64));
      FAIL() << "no error at " << most;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Io);
      EXPECT_NE(std::string(error.what()).find(file().string()), std::string::npos) << error.what();
    }
    packs.reset();
    EXPECT_EQ(std::distance(fs::directory_iterator(model()), {}), files);
  }
}

TEST_F(PackCache, TwoLoadsAtOnceDoNotDisturbEachOther) {
  const ModelConfig config = ModelConfig::read(model());
  PackOptions options;
  options.quantize = QuantType::q8_0;
  options.place = [&](const PackPlan& plan) { return packs_in_file(file(), plan, origin()); };
  WeightSource a = WeightSource::open_layer(Checkpoint::open(model()), config, 1, options);
  WeightSource b = WeightSource::open_layer(Checkpoint::open(model()), config, 1, options);
  for (WeightSource* source : {&a, &b}) take_layer(*source, config, 1);
  b.finish();
  a.finish();
  const auto bytes = [](const WeightSource& source) { return std::span(source.packs()->data(), source.plan()->bytes()); };
  EXPECT_BYTES_EQ(bytes(a), bytes(b));
  EXPECT_TRUE(load().found);
}

}  // namespace
}  // namespace kilin

// How WeightSource hands out blocks: in panels, as rows, or as plain elements.
#include "weights/weight_packer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "core/error.h"
#include "kernels/quant/blocks.h"
#include "support/block_store.h"
#include "support/compare.h"
#include "support/golden.h"
#include "weights/weight_source.h"

namespace kilin {
namespace {

class WeightPackerOfTiny : public ::testing::Test {
 protected:
  const ModelConfig config_ = ModelConfig::read(testing::in_repository("models/tiny"));
  const std::shared_ptr<const testing::BlockStore> store_ = std::make_shared<testing::BlockStore>(config_);
};

// Row r of panels, element by element.
std::vector<float> row_of_panels(const PackedMatrix& w, size_t r) {
  std::vector<float> row;
  const size_t elements = block_size(w.format().block()).elements;
  for (size_t block = 0; block < w.cols() / elements; ++block) {
    BlockParts parts;
    take_apart_panel(w.format().block(), w.panel(r / kPanelRows), r % kPanelRows, block, parts);
    for (size_t i = 0; i < elements; ++i) {
      const size_t group = i / block_traits(w.format().block()).group;
      row.push_back(parts.scale(group) * static_cast<float>(code_value(w.format().block(), parts.codes[i])) +
                    parts.offset(group));
    }
  }
  return row;
}

TEST_F(WeightPackerOfTiny, BlocksThatProductsReadBecomePanelsOfTheSameValues) {
  ThreadPool pool(3);
  for (ThreadPool* packers : {static_cast<ThreadPool*>(nullptr), &pool}) {
    PackOptions options;
    options.pool = packers;
    WeightSource source = WeightSource::open(store_, config_, options);
    const std::string name = "model.layers.0.self_attn.b_proj.weight";  // 4 rows: a panel that is not full
    for (const std::string& each : {std::string("lm_head.weight"), name}) {
      const PackedMatrix w = source.matrix(each);
      ASSERT_TRUE(w.has_panels());
      const std::vector<float> values = store_->values(each);
      for (size_t r : {size_t{0}, w.rows() / 2, w.rows() - 1}) {
        const std::span<const float> row = std::span(values).subspan(r * w.cols(), w.cols());
        EXPECT_BYTES_EQ(row_of_panels(w, r), row) << each << " row " << r;
      }
    }
  }
}

TEST_F(WeightPackerOfTiny, ATableStaysInRowsAndWhatIsDenseBecomesFloats) {
  WeightSource source = WeightSource::open(store_, config_);
  const std::string embedding = "model.embed_tokens.weight", kv_b = "model.layers.3.self_attn.kv_b_proj.weight";
  const PackedMatrix table = source.table(embedding);
  EXPECT_FALSE(table.has_panels());
  EXPECT_EQ(table.data(), store_->require(embedding).bytes.data());
  const DenseMatrix dense = source.dense(kv_b);
  EXPECT_EQ(dense.view.format(), DType::f32);
  EXPECT_BYTES_EQ(std::span(dense.owned.as<float>(), dense.owned.elements()), store_->values(kv_b));
  EXPECT_EQ(source.plan()->find(embedding), nullptr);
  EXPECT_EQ(source.plan()->find(kv_b), nullptr);
}

TEST_F(WeightPackerOfTiny, PacksStandBackToBackAtMultiplesOf64) {
  const PackPlan plan = PackPlan::of(*store_, config_, {});
  uint64_t end = 0;
  for (const PlannedPack& pack : plan.packs()) {
    EXPECT_EQ(pack.offset, end) << pack.name;
    EXPECT_EQ(pack.offset % 64, 0u) << pack.name;
    EXPECT_EQ(plan.find(pack.name), &pack);
    end += pack.bytes;
  }
  EXPECT_EQ(plan.bytes(), end);
}

TEST_F(WeightPackerOfTiny, TiedWordsArePackedForTheHeadAndStayRowsForTheTable) {
  ModelConfig config = config_;
  config.tie_word_embeddings = true;
  const PackPlan plan = PackPlan::of(*store_, config, {});
  const PlannedPack* head = plan.find("lm_head.weight");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->source, "model.embed_tokens.weight");
}

TEST_F(WeightPackerOfTiny, ProgressIsToldInBytesUpToAllOfThem) {
  uint64_t last = 0, all = 0;
  PackOptions options;
  options.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  };
  WeightSource source = WeightSource::open(store_, config_, options);
  for (const PlannedPack& pack : source.plan()->packs()) source.matrix(pack.name);
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, source.plan()->bytes());
}

TEST_F(WeightPackerOfTiny, WhatIsQuantisedAlreadyIsNotQuantisedAgain) {
  PackOptions options;
  options.quantize = QuantType::q4_k_m;
  try {
    WeightSource::open(store_, config_, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find("is q8_0 already; expected f32, f16 or bf16 to quantise to q4_k_m"),
              std::string::npos)
        << error.what();
  }
}

// One matrix of one row group, with a bad value.
class BadStore final : public TensorStore {
 public:
  explicit BadStore(float bad) : values_(64, 1.0f) { values_[40] = bad; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return names_.front(); }
  std::optional<StoredTensor> find(std::string_view name) const override {
    return StoredTensor{std::string(name), DType::f32, {2, 32}, std::as_bytes(std::span(values_)), "bad.file"};
  }

 private:
  std::vector<std::string> names_ = {"matrix"};
  std::vector<float> values_;
};

TEST(WeightPacker, ValuesThatNoBlockHoldsAreNamedWithTheirPlace) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e6f}) {
    const BadStore store(bad);
    const PlannedPack pack = {"matrix", "matrix", BlockFormat::q8_0, 2, 32, 0, panel_bytes(BlockFormat::q8_0, 2, 32)};
    PackOptions options;
    options.place = [&](const PackPlan&) { return packs_in_memory(pack.bytes); };
    WeightPacker packer(PackPlan(), options);
    try {
      packer.pack(pack, store.require("matrix"), store);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt);
      EXPECT_NE(std::string(error.what()).find("bad.file: tensor 'matrix' holds"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("at [1, 8]"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace kilin

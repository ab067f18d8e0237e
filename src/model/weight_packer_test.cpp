// How WeightSource hands out blocks: in panels, as rows, or as plain elements.
#include "model/weight_packer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "kernels/quant/blocks.h"
#include "kernels/quant/quantize.h"
#include "model/kimi_linear_for_causal_lm.h"
#include "model/weight_use.h"
#include "support/compare.h"
#include "support/golden.h"

namespace kilin {
namespace {

// models/tiny in memory, all matrices in q8_0, as a GGUF file would hold them.
class BlockStore final : public TensorStore {
 public:
  explicit BlockStore(const ModelConfig& config) : original_(Checkpoint::open(testing::in_repository("models/tiny"))) {
    for (const ExpectedTensor& tensor : expected_tensors(config)) {
      names_.push_back(tensor.name);
      if (use_of(*tensor.pattern) != WeightUse::Parameter) blocks_[tensor.name] = as_blocks(original_->require(tensor.name));
    }
    std::ranges::sort(names_);
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return source_; }
  std::optional<StoredTensor> find(std::string_view name) const override {
    auto tensor = original_->find(name);
    const auto at = blocks_.find(name);
    if (at == blocks_.end()) return tensor;
    tensor->format = BlockFormat::q8_0;
    tensor->bytes = at->second;
    return tensor;
  }
  void release(std::span<const std::byte> bytes) const override { released_ += bytes.size(); }
  size_t released() const { return released_; }

  std::vector<float> values(const std::string& name) const {
    const StoredTensor tensor = require(name);
    std::vector<float> values(tensor.elements());
    dequantize_row(BlockFormat::q8_0, tensor.bytes.data(), values.size(), values.data());
    return values;
  }

 private:
  static std::vector<std::byte> as_blocks(const StoredTensor& tensor) {
    std::vector<float> values(tensor.elements());
    const auto* halves = reinterpret_cast<const bf16*>(tensor.bytes.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = to_float(halves[i]);
    std::vector<std::byte> blocks(StorageFormat(BlockFormat::q8_0).bytes_of(values.size()));
    quantize_row(BlockFormat::q8_0, Rounding::Nearest, values.data(), values.size(), blocks.data());
    return blocks;
  }

  std::shared_ptr<const Checkpoint> original_;
  std::vector<std::string> names_;
  std::string source_ = "blocks";
  std::map<std::string, std::vector<std::byte>, std::less<>> blocks_;
  mutable size_t released_ = 0;
};

class WeightPackerOfTiny : public ::testing::Test {
 protected:
  const ModelConfig config_ = ModelConfig::read(testing::in_repository("models/tiny"));
  const std::shared_ptr<const BlockStore> store_ = std::make_shared<BlockStore>(config_);
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
      const StoredTensor stored = store_->require(each);
      const PackedMatrix w = source.matrix(each, stored.shape[0], stored.shape[1]);
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
  const PackedMatrix table = source.table(embedding, config_.vocab_size, config_.hidden_size);
  EXPECT_FALSE(table.has_panels());
  EXPECT_EQ(table.data(), store_->require(embedding).bytes.data());
  const DenseMatrix dense = source.dense(kv_b, config_.mla_kv_width(), config_.kv_lora_rank);
  EXPECT_EQ(dense.view.format(), DType::f32);
  EXPECT_BYTES_EQ(std::span(dense.owned.as<float>(), dense.owned.elements()), store_->values(kv_b));
  EXPECT_EQ(source.plan()->find(embedding), nullptr);
  EXPECT_EQ(source.plan()->find(kv_b), nullptr);
}

TEST_F(WeightPackerOfTiny, TheModelTakesEveryPlannedPackAndGivesTheirSourcesBack) {
  WeightSource source = WeightSource::open(store_, config_);
  KimiLinearForCausalLM::load(source, config_);
  EXPECT_TRUE(source.packs()->is_complete());
  size_t bytes = 0, packed = 0;
  for (const ExpectedTensor& tensor : expected_tensors(config_)) {
    const WeightUse use = use_of(*tensor.pattern);
    if (!is_product(use)) continue;
    ++packed;
    bytes += store_->require(tensor.name).bytes.size();
  }
  EXPECT_EQ(source.plan()->packs().size(), packed);
  for (size_t layer : {3u, 5u})  // kv_b_proj, whose copy replaces it
    bytes += store_->require(fmt::format("model.layers.{}.self_attn.kv_b_proj.weight", layer)).bytes.size();
  EXPECT_EQ(store_->released(), bytes);
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
  KimiLinearForCausalLM::load(source, config_);
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

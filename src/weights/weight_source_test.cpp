#include "weights/weight_source.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "core/error.h"
#include "support/compare.h"
#include "support/golden.h"
#include "weights/weight_map.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::in_repository;
using testing::TemporaryFolder;

class WeightSourceOfTiny : public ::testing::Test {
 protected:
  const ModelConfig config_ = ModelConfig::read(in_repository("models/tiny"));
  const std::shared_ptr<const Checkpoint> checkpoint_ = Checkpoint::open(in_repository("models/tiny"));
};

template <typename F>
std::string error_of(F call, ErrorCode code) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
}

TEST_F(WeightSourceOfTiny, AMatrixIsAViewOfTheMappedBytes) {
  WeightSource source = WeightSource::open(checkpoint_, config_);
  const PackedMatrix matrix = source.matrix("lm_head.weight", 4096, 256);
  EXPECT_EQ(matrix.format(), DType::bf16);
  EXPECT_EQ(matrix.row(0), checkpoint_->require("lm_head.weight").bytes.data());
  EXPECT_EQ(source.store(), checkpoint_);
}

// models/tiny with each tensor at an odd address.
class OddStore final : public TensorStore {
 public:
  explicit OddStore(std::shared_ptr<const TensorStore> store) : store_(std::move(store)) {}
  const std::vector<std::string>& names() const override { return store_->names(); }
  const std::string& source() const override { return store_->source(); }
  std::optional<StoredTensor> find(std::string_view name) const override {
    auto tensor = store_->find(name);
    if (!tensor) return tensor;
    auto& bytes = moved_[std::string(name)];
    if (bytes.empty()) {
      bytes.resize(1);
      bytes.insert(bytes.end(), tensor->bytes.begin(), tensor->bytes.end());
    }
    tensor->bytes = std::span(bytes).subspan(1);
    return tensor;
  }

 private:
  std::shared_ptr<const TensorStore> store_;
  mutable std::map<std::string, std::vector<std::byte>> moved_;
};

TEST_F(WeightSourceOfTiny, ElementsAtOddAddressesAreCopiedAndOthersAreNot) {
  WeightSource odd = WeightSource::open(std::make_shared<OddStore>(checkpoint_), config_);
  WeightSource plain = WeightSource::open(checkpoint_, config_);
  const std::string kv_b = "model.layers.3.self_attn.kv_b_proj.weight";
  const Shape kv_b_shape = checkpoint_->require(kv_b).shape;
  const auto expect_same = [](const PackedMatrix& a, const PackedMatrix& b) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
    EXPECT_BYTES_EQ(std::span(a.data(), a.bytes()), std::span(b.data(), b.bytes()));
  };
  const PackedMatrix embedding = odd.table("model.embed_tokens.weight", 4096, 256);
  expect_same(embedding, plain.table("model.embed_tokens.weight", 4096, 256));
  expect_same(odd.matrix("lm_head.weight", 4096, 256), plain.matrix("lm_head.weight", 4096, 256));
  expect_same(odd.dense(kv_b, kv_b_shape[0], kv_b_shape[1]).view, plain.dense(kv_b, kv_b_shape[0], kv_b_shape[1]).view);
  EXPECT_EQ(odd.copies()->size(), 3u);
  EXPECT_EQ(odd.tied_matrix("tied", embedding).data(), embedding.data());
  const Tensor norm = odd.vector("model.norm.weight", 256), same = plain.vector("model.norm.weight", 256);
  EXPECT_BYTES_EQ(std::span(norm.data(), norm.bytes()), std::span(same.data(), same.bytes()));
  EXPECT_EQ(odd.copies()->size(), 3u);
  EXPECT_TRUE(plain.copies()->empty());
}

TEST_F(WeightSourceOfTiny, VectorsAndConvolutionsBecomeFloats) {
  WeightSource source = WeightSource::open(checkpoint_, config_);
  const Tensor norm = source.vector("model.norm.weight", 256);
  const auto* stored = reinterpret_cast<const bf16*>(checkpoint_->require("model.norm.weight").bytes.data());
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(norm.as<float>()[i], to_float(stored[i]));
  const Tensor A_log = source.vector("model.layers.0.self_attn.A_log", 4);  // stored [1, 1, 4, 1], fp32
  EXPECT_BYTES_EQ(std::span(A_log.data(), A_log.bytes()), checkpoint_->require("model.layers.0.self_attn.A_log").bytes);
  const Tensor conv = source.conv("model.layers.0.self_attn.q_conv1d.weight", 256, 4);
  EXPECT_EQ(conv.shape(), (Shape{256, 4}));
  const auto* taps =
      reinterpret_cast<const bf16*>(checkpoint_->require("model.layers.0.self_attn.q_conv1d.weight").bytes.data());
  EXPECT_EQ(conv.as<float>()[5], to_float(taps[5]));
}

TEST_F(WeightSourceOfTiny, EachTensorIsHandedOutOnce) {
  WeightSource source = WeightSource::open(checkpoint_, config_);
  source.vector("model.norm.weight", 256);
  EXPECT_NE(error_of([&] { source.vector("model.norm.weight", 256); }, ErrorCode::InvalidArgument).find("before"),
            std::string::npos);
  EXPECT_NE(error_of([&] { source.vector("model.nrm.weight", 256); }, ErrorCode::NotFound).find("'model.nrm.weight'"),
            std::string::npos);
}

TEST_F(WeightSourceOfTiny, WhatNobodyTookIsNamed) {
  WeightSource source = WeightSource::open(checkpoint_, config_);
  EXPECT_NE(error_of([&] { source.finish(); }, ErrorCode::Corrupt).find("lm_head.weight"), std::string::npos);
  for (const std::string& name : checkpoint_->names())
    if (name != "model.norm.weight") source.vector(name, checkpoint_->require(name).elements());
  const std::string message = error_of([&] { source.finish(); }, ErrorCode::Corrupt);
  EXPECT_NE(message.find("1 tensors"), std::string::npos) << message;
  EXPECT_NE(message.find("model.norm.weight"), std::string::npos) << message;
  source.vector("model.norm.weight", 256);
  EXPECT_NO_THROW(source.finish());
}

TEST_F(WeightSourceOfTiny, AnotherShapeThanAskedForIsAnError) {
  WeightSource source = WeightSource::open(checkpoint_, config_);
  const std::string message = error_of([&] { source.matrix("lm_head.weight", 256, 4096); }, ErrorCode::Corrupt);
  EXPECT_NE(message.find("[4096, 256]; expected [256, 4096]"), std::string::npos) << message;
  EXPECT_NE(error_of([&] { source.vector("model.norm.weight", 255); }, ErrorCode::Corrupt).find("255"), std::string::npos);
  EXPECT_NE(error_of([&] { source.conv("model.layers.0.self_attn.q_conv1d.weight", 256, 3); }, ErrorCode::Corrupt)
                .find("[256, 1, 3]"),
            std::string::npos);
}

TEST(WeightSource, ReadsAllThreeFloatFormats) {
  const ModelConfig config = ModelConfig::read(in_repository("models/tiny"));
  const auto original = Checkpoint::open(in_repository("models/tiny"));
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    TemporaryFolder folder;
    std::vector<SafetensorsWriter::Planned> plan;
    for (const ExpectedTensor& tensor : expected_tensors(config)) plan.push_back({tensor.name, dtype, tensor.shape});
    SafetensorsWriter writer(folder.path(), plan, uint64_t{1} << 40);
    for (const auto& tensor : writer.tensors()) {
      // 1.5 everywhere: exact in every format.
      std::vector<std::byte> bytes(tensor.bytes());
      for (size_t i = 0; i < bytes.size(); i += size_of(dtype)) {
        const uint32_t bits = dtype == DType::f16 ? 0x3e00u : dtype == DType::bf16 ? 0x3fc0u : 0x3fc00000u;
        std::memcpy(&bytes[i], &bits, size_of(dtype));
      }
      writer.write(tensor.name, bytes);
    }
    writer.commit();
    WeightSource source = WeightSource::open(Checkpoint::open(folder.path()), config);
    const Tensor vector = source.vector("model.layers.0.self_attn.A_log", 4);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(vector.as<float>()[i], 1.5f);
    EXPECT_EQ(to_string(source.matrix("lm_head.weight", 4096, 256).format()), to_string(dtype));
  }
}

TEST(WeightSource, OneLayerLoadsWhereOnlyItsShardIs) {
  GOLDEN_OR_SKIP(golden, "tiny-kimi-linear");
  TemporaryFolder folder;
  for (const char* file : {"config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"})
    fs::copy(golden / file, folder / file);
  const ModelConfig config = ModelConfig::read(folder.path());
  EXPECT_THROW(Checkpoint::open(folder.path()), Error);
  const auto checkpoint = Checkpoint::open(folder.path(), Checkpoint::Shards::OnDemand);
  WeightSource source = WeightSource::open_layer(checkpoint, config, 1);
  for (const ExpectedTensor& tensor : expected_tensors_of_layer(config, 1)) source.vector(tensor.name, tensor.shape.elements());
  EXPECT_NO_THROW(source.finish());
  EXPECT_THROW(source.vector("lm_head.weight", 1), Error);               // of no layer that was opened
  EXPECT_THROW(WeightSource::open_layer(checkpoint, config, 6), Error);  // in the other shard
  EXPECT_THROW(WeightSource::open(checkpoint, config), Error);
}

}  // namespace
}  // namespace kilin

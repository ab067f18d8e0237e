#include "weights/native_names.h"

#include <gtest/gtest.h>

#include <map>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "core/error.h"
#include "support/compare.h"
#include "support/golden.h"
#include "weights/weight_map.h"
#include "weights/weight_source.h"

namespace kilin {
namespace {

using testing::in_repository;
using testing::TemporaryFolder;

struct Native {
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

std::vector<std::byte> joined(std::initializer_list<StoredTensor> tensors) {
  std::vector<std::byte> bytes;
  for (const auto& tensor : tensors) bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  return bytes;
}

// Rewrites models/tiny as transformers' own class saves it, by the description in its documentation: independent of
// native_names.
std::map<std::string, Native> native_tensors(const Checkpoint& published, const ModelConfig& c) {
  std::map<std::string, Native> native;
  const std::pair<std::string, const char*> renamed[] = {
      {".f_a_proj.", ".forget_gate_down."}, {".f_b_proj.", ".forget_gate_up."}, {".b_proj.", ".beta_proj."},
      {".g_a_proj.", ".output_gate_down."}, {".g_b_proj.", ".output_gate_up."}, {".block_sparse_moe.", ".mlp."}};
  for (const std::string& name : published.names()) {
    if (name.find("_conv1d") != std::string::npos || name.find(".experts.") != std::string::npos) continue;
    const StoredTensor tensor = published.require(name);
    std::string other = name;
    for (const auto& [published_part, native_part] : renamed)
      if (const size_t at = other.find(published_part); at != std::string::npos)
        other.replace(at, published_part.size(), native_part);
    Shape shape = tensor.shape;
    if (name.ends_with("A_log")) shape = {c.kda_num_heads, 1};
    if (name.ends_with("dt_bias")) shape = {c.kda_num_heads, c.kda_head_dim};
    native[other] = {tensor.format.dtype(), shape, {tensor.bytes.begin(), tensor.bytes.end()}};
  }
  for (size_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    if (c.is_kda(layer)) {
      const auto conv = [&](const char* letter) {
        return published.require(prefix + "self_attn." + letter + "_conv1d.weight");
      };
      native[prefix + "self_attn.conv1d.weight"] = {
          DType::bf16, {3 * c.kda_width(), 1, c.short_conv_kernel_size}, joined({conv("q"), conv("k"), conv("v")})};
    }
    if (!c.is_moe(layer)) continue;
    Native gate_up{DType::bf16, {c.num_experts, 2 * c.moe_intermediate_size, c.hidden_size}, {}};
    Native down{DType::bf16, {c.num_experts, c.hidden_size, c.moe_intermediate_size}, {}};
    for (size_t expert = 0; expert < c.num_experts; ++expert) {
      const std::string of = prefix + "block_sparse_moe.experts." + std::to_string(expert) + ".";
      for (const auto& [into, names] :
           {std::pair(&gate_up, std::vector{"w1.weight", "w3.weight"}), std::pair(&down, std::vector{"w2.weight"})})
        for (const char* name : names) {
          const auto bytes = published.require(of + name).bytes;
          into->bytes.insert(into->bytes.end(), bytes.begin(), bytes.end());
        }
    }
    native[prefix + "mlp.experts.gate_up_proj"] = std::move(gate_up);
    native[prefix + "mlp.experts.down_proj"] = std::move(down);
  }
  return native;
}

void write(const std::filesystem::path& folder, const std::map<std::string, Native>& tensors) {
  std::vector<SafetensorsWriter::Planned> plan;
  for (const auto& [name, tensor] : tensors) plan.push_back({name, tensor.dtype, tensor.shape});
  SafetensorsWriter writer(folder, plan, 8 << 20);
  for (const auto& planned : writer.tensors()) writer.write(planned.name, tensors.at(planned.name).bytes);
  writer.commit();
}

class NativeNames : public ::testing::Test {
 protected:
  const ModelConfig config_ = ModelConfig::read(in_repository("models/tiny"));
  const std::shared_ptr<const Checkpoint> published_ = Checkpoint::open(in_repository("models/tiny"));
  std::map<std::string, Native> native_ = native_tensors(*published_, config_);
  TemporaryFolder folder_;
};

TEST_F(NativeNames, ViewsHoldThePublishedBytesWithoutACopy) {
  write(folder_ / "native", native_);
  const auto native = Checkpoint::open(folder_ / "native");
  ASSERT_TRUE(has_native_names(*native));
  const auto view = with_published_names(native, config_);
  ASSERT_EQ(view->names(), published_->names());
  EXPECT_NO_THROW(check_tensors(*view, config_));
  for (const std::string& name : published_->names()) {
    const StoredTensor got = view->require(name), want = published_->require(name);
    EXPECT_EQ(got.name, name);
    EXPECT_EQ(got.format, want.format) << name;
    EXPECT_EQ(got.elements(), want.elements()) << name;
    EXPECT_BYTES_EQ(got.bytes, want.bytes) << name;
  }
  const auto packed = native->require("model.layers.1.mlp.experts.gate_up_proj").bytes;
  const auto w3 = view->require("model.layers.1.block_sparse_moe.experts.7.w3.weight").bytes;
  EXPECT_EQ(&w3.back(), &packed.back());
}

TEST_F(NativeNames, PublishedNamesPassUntouched) {
  EXPECT_FALSE(has_native_names(*published_));
  EXPECT_EQ(with_published_names(published_, config_), published_);
}

TEST_F(NativeNames, AWeightSourceLoadsFromThem) {
  write(folder_ / "native", native_);
  WeightSource source = WeightSource::open(Checkpoint::open(folder_ / "native"), config_);
  const PackedMatrix w2 = source.matrix("model.layers.2.block_sparse_moe.experts.3.w2.weight");
  const auto want = published_->require("model.layers.2.block_sparse_moe.experts.3.w2.weight").bytes;
  EXPECT_BYTES_EQ(std::span(w2.row(0), w2.bytes()), want);
}

TEST_F(NativeNames, APackedTensorOfAnotherShapeIsNamed) {
  auto& conv = native_.at("model.layers.0.self_attn.conv1d.weight");
  conv.shape = {conv.shape[0] / 2, 1, 2 * conv.shape[2]};  // as many elements
  write(folder_ / "native", native_);
  try {
    WeightSource::open(Checkpoint::open(folder_ / "native"), config_);
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    EXPECT_NE(message.find("'model.layers.0.self_attn.conv1d.weight' has shape [384, 1, 8]; expected [768, 1, 4]"),
              std::string::npos)
        << message;
  }
}

TEST_F(NativeNames, ATensorUnderBothNamesIsCorrupt) {
  native_["model.layers.0.self_attn.f_a_proj.weight"] = native_.at("model.layers.0.self_attn.forget_gate_down.weight");
  write(folder_ / "native", native_);
  try {
    with_published_names(Checkpoint::open(folder_ / "native"), config_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("forget_gate_down"), std::string::npos) << error.what();
  }
}

TEST_F(NativeNames, WhatIsMissingOrSurplusIsStillNamed) {
  native_.erase("model.layers.0.self_attn.beta_proj.weight");
  native_["model.layers.0.self_attn.output_gate.weight"] = native_.at("model.norm.weight");
  write(folder_ / "native", native_);
  try {
    WeightSource::open(Checkpoint::open(folder_ / "native"), config_);
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("missing 'model.layers.0.self_attn.b_proj.weight'"), std::string::npos) << message;
    EXPECT_NE(message.find("surplus 'model.layers.0.self_attn.output_gate.weight'"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace kilin

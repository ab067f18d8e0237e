#include "gguf/names.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <thread>

#include "checkpoint/gguf_file.h"
#include "core/dtype.h"
#include "core/error.h"
#include "gguf/config.h"
#include "support/golden.h"
#include "support/mini_gguf.h"
#include "weights/stored_values.h"
#include "weights/weight_map.h"

namespace kilin {
namespace {

using testing::GgufBuilder;
using testing::mini_gguf;
using testing::ramp;

struct Opened {
  std::shared_ptr<const GgufFile> gguf;
  ModelConfig config;
  std::shared_ptr<const TensorStore> published;

  std::vector<float> values(const std::string& name) const {
    const StoredTensor tensor = published->require(name);
    EXPECT_EQ(tensor.format, DType::f32) << name;
    std::vector<float> all(tensor.elements());
    std::memcpy(all.data(), tensor.bytes.data(), tensor.bytes.size());
    return all;
  }
  bool is_view(const std::string& name, const std::string& stored) const {
    const auto part = published->require(name).bytes, whole = gguf->require(stored).bytes;
    return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
  }
};

Opened open(const GgufBuilder& file) {
  const testing::TemporaryFolder folder;  // a mapped file stays when it is removed
  file.write(folder / "m.gguf");
  Opened opened;
  opened.gguf = GgufFile::open(folder / "m.gguf");
  opened.config = read_gguf_config(opened.gguf->metadata(), *opened.gguf);
  opened.published = gguf_with_published_names(opened.gguf, opened.config);
  return opened;
}

std::string refusal(const GgufBuilder& file) {
  try {
    const Opened opened = open(file);
    check_tensors(*opened.published, opened.config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const GgufBuilder& file, const std::vector<std::string>& words) {
  const std::string message = refusal(file);
  for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << message << "\nexpected: " << word;
}

GgufBuilder without_kv_b() {
  return mini_gguf().without_tensor("blk.1.attn_k_b.weight").without_tensor("blk.1.attn_v_b.weight");
}

TEST(GgufNames, AWholeFileHasExactlyTheModelsTensors) {
  const Opened opened = open(mini_gguf());
  check_tensors(*opened.published, opened.config);
  EXPECT_EQ(opened.published->names().size(), expected_tensors(opened.config).size());
  EXPECT_EQ(opened.published->stored_name("model.layers.0.self_attn.dt_bias"), "blk.0.ssm_dt.bias");
  EXPECT_EQ(opened.published->stored_name("model.layers.1.block_sparse_moe.experts.2.w3.weight"), "blk.1.ffn_up_exps.weight");
  EXPECT_EQ(opened.published->stored_name("model.norm.weight"), "output_norm.weight");
}

TEST(GgufNames, ExpertsAreRowsOfTheirTensor) {
  const Opened opened = open(mini_gguf());
  const std::string prefix = "model.layers.1.block_sparse_moe.experts.";
  for (size_t expert = 0; expert < 3; ++expert) {
    const std::string w2 = prefix + std::to_string(expert) + ".w2.weight";
    EXPECT_EQ(opened.published->require(w2).shape, (Shape{4, 6}));
    EXPECT_EQ(opened.values(w2), ramp(24, static_cast<float>(3 * expert)));
    EXPECT_TRUE(opened.is_view(w2, "blk.1.ffn_down_exps.weight"));
  }
  EXPECT_EQ(opened.published->require(prefix + "0.w1.weight").shape, (Shape{6, 4}));
  EXPECT_EQ(opened.published->require(prefix + "0.w1.weight").name, prefix + "0.w1.weight");
}

constexpr const char* kGateUp = "blk.1.ffn_gate_up_exps.weight";

GgufBuilder without_gate_and_up() {
  return mini_gguf().without_tensor("blk.1.ffn_gate_exps.weight").without_tensor("blk.1.ffn_up_exps.weight");
}

TEST(GgufNames, GateAndUpMayStandInOneTensorTheGateFirst) {
  const Opened opened = open(without_gate_and_up().tensor(kGateUp, {4, 12, 3}, ramp(144)));
  check_tensors(*opened.published, opened.config);
  for (size_t expert = 0; expert < 3; ++expert)
    for (size_t half = 0; half < 2; ++half) {
      const std::string name = fmt::format("model.layers.1.block_sparse_moe.experts.{}.w{}.weight", expert, half == 0 ? 1 : 3);
      EXPECT_EQ(opened.published->require(name).shape, (Shape{6, 4}));
      EXPECT_EQ(opened.values(name), ramp(24, static_cast<float>(6 * expert + 3 * half)));
      EXPECT_TRUE(opened.is_view(name, kGateUp));
      EXPECT_EQ(opened.published->stored_name(name), kGateUp);
    }
}

TEST(GgufNames, GateAndUpOfBlocksAreCutBetweenBlocks) {
  constexpr uint32_t kQ8_0 = 8;
  constexpr size_t kRowBytes = 34;
  std::vector<std::byte> blocks(3 * 12 * kRowBytes);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i / kRowBytes);
  const Opened opened = open(without_gate_and_up().tensor(kGateUp, {32, 12, 3}, kQ8_0, blocks));
  const StoredTensor up = opened.published->require("model.layers.1.block_sparse_moe.experts.1.w3.weight");
  EXPECT_EQ(up.shape, (Shape{6, 32}));
  ASSERT_EQ(up.bytes.size(), 6 * kRowBytes);
  EXPECT_EQ(up.bytes.front(), std::byte{18});
  EXPECT_EQ(up.bytes.back(), std::byte{23});
}

TEST(GgufNames, GateAndUpInOneTensorOfAnotherShapeOrStandingTwiceAreRefused) {
  for (const std::vector<uint64_t>& extents : std::vector<std::vector<uint64_t>>{{4, 6, 3}, {4, 13, 3}, {4, 24, 3}})
    expect_refused(without_gate_and_up().tensor(kGateUp, extents, ramp(extents[0] * extents[1] * extents[2])),
                   {kGateUp, "expected 12 rows an expert (2 x expert_feed_forward_length)"});
  expect_refused(without_gate_and_up().tensor(kGateUp, {4, 12, 2}, ramp(96)), {kGateUp, "expected three axes, the first of 3"});
  expect_refused(mini_gguf().tensor(kGateUp, {4, 12, 3}, ramp(144)), {"stand for the same weights"});
}

TEST(GgufNames, ConvolutionsOfAnyFormAreOne) {
  const std::string stored = "blk.0.ssm_conv1d_k.weight", name = "model.layers.0.self_attn.k_conv1d.weight";
  for (const std::vector<uint64_t>& extents :
       std::vector<std::vector<uint64_t>>{{4, 6}, {4, 1, 6}, {4, 1, 6, 1}, {4, 6, 1, 1}}) {
    const Opened opened = open(mini_gguf().without_tensor(stored).tensor(stored, extents, ramp(24)));
    EXPECT_EQ(opened.published->require(name).shape, (Shape{6, 1, 4}));
    EXPECT_EQ(opened.values(name), ramp(24));
    check_tensors(*opened.published, opened.config);
  }
  expect_refused(mini_gguf().without_tensor(stored).tensor(stored, {6, 4}, ramp(24)), {stored, "has shape [4, 6]"});
}

TEST(GgufNames, DecayIsTheLogarithmOfWhatIsStored) {
  const Opened opened = open(mini_gguf());
  EXPECT_EQ(opened.values("model.layers.0.self_attn.A_log"), (std::vector<float>{0.0f, std::log(2.0f)}));
  for (const float wrong : {0.0f, 0.5f, NAN, -INFINITY})
    expect_refused(mini_gguf().without_tensor("blk.0.ssm_a").tensor("blk.0.ssm_a", {1, 2}, {-1.0f, wrong}),
                   {"'blk.0.ssm_a' holds", "at place 1"});
}

TEST(GgufNames, KeysAndValuesAreJoinedByHead) {
  const Opened opened = open(mini_gguf());
  const std::string name = "model.layers.1.self_attn.kv_b_proj.weight";
  EXPECT_EQ(opened.published->require(name).shape, (Shape{10, 5}));
  const std::vector<float> kv_b = opened.values(name), keys = ramp(30), values = ramp(20);
  for (size_t head = 0; head < 2; ++head)
    for (size_t r = 0; r < 5; ++r) {
      for (size_t n = 0; n < 3; ++n) EXPECT_EQ(kv_b[(head * 5 + n) * 5 + r], keys[(head * 5 + r) * 3 + n]);
      for (size_t v = 0; v < 2; ++v) EXPECT_EQ(kv_b[(head * 5 + 3 + v) * 5 + r], values[(head * 2 + v) * 5 + r]);
    }
  EXPECT_EQ(opened.published->require(name).bytes.data(), opened.published->require(name).bytes.data()) << "made once";
}

TEST(GgufNames, KeysAndValuesOfBf16AreJoinedAsBf16) {
  constexpr uint32_t kBf16 = 30;  // of GGUF
  const auto halves = [](size_t n) {
    std::vector<bf16> elements(n);
    for (size_t i = 0; i < n; ++i) elements[i] = to_bf16(static_cast<float>(i));
    const auto bytes = std::as_bytes(std::span(elements));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const Opened opened = open(mini_gguf()
                                 .without_tensor("blk.1.attn_k_b.weight")
                                 .without_tensor("blk.1.attn_v_b.weight")
                                 .tensor("blk.1.attn_k_b.weight", {3, 5, 2}, kBf16, halves(30))
                                 .tensor("blk.1.attn_v_b.weight", {5, 2, 2}, kBf16, halves(20)));
  const StoredTensor kv_b = opened.published->require("model.layers.1.self_attn.kv_b_proj.weight");
  ASSERT_EQ(kv_b.format, DType::bf16);
  std::vector<float> joined(kv_b.elements());
  read_values(kv_b, 0, joined.size(), joined.data());
  for (size_t head = 0; head < 2; ++head)
    for (size_t r = 0; r < 5; ++r) {
      for (size_t n = 0; n < 3; ++n) EXPECT_EQ(joined[(head * 5 + n) * 5 + r], static_cast<float>((head * 5 + r) * 3 + n));
      for (size_t v = 0; v < 2; ++v) EXPECT_EQ(joined[(head * 5 + 3 + v) * 5 + r], static_cast<float>((head * 2 + v) * 5 + r));
    }
}

TEST(GgufNames, AnUnsplitKvBIsAView) {
  const Opened opened = open(without_kv_b().tensor("blk.1.attn_kv_b.weight", {5, 10}, ramp(50)));
  EXPECT_EQ(opened.values("model.layers.1.self_attn.kv_b_proj.weight"), ramp(50));
  EXPECT_TRUE(opened.is_view("model.layers.1.self_attn.kv_b_proj.weight", "blk.1.attn_kv_b.weight"));
  check_tensors(*opened.published, opened.config);
}

TEST(GgufNames, FaultsAreToldByTheFilesOwnNames) {
  expect_refused(without_kv_b(), {"1 missing", "missing 'blk.1.attn_k_b.weight'"});
  expect_refused(mini_gguf().without_tensor("blk.1.attn_v_b.weight"), {"1 missing, 0 surplus", "'blk.1.attn_v_b.weight'"});
  expect_refused(mini_gguf().without_tensor("blk.1.attn_k_b.weight"), {"'blk.1.attn_k_b.weight'"});
  expect_refused(mini_gguf().without_tensor("blk.1.ffn_up_exps.weight"), {"1 missing", "'blk.1.ffn_up_exps.weight'"});
  expect_refused(mini_gguf().without_tensor("token_embd.weight"), {"missing 'token_embd.weight'"});
  expect_refused(mini_gguf().tensor("blk.0.other", {1}, {0}).tensor("blk.2.attn_q.weight", {1}, {0}).tensor("x", {1}, {0}),
                 {"3 surplus", "surplus 'blk.0.other'", "surplus 'blk.2.attn_q.weight'", "surplus 'x'"});
  expect_refused(mini_gguf().without_tensor("blk.0.ssm_beta.weight").tensor("blk.0.ssm_beta.weight", {2, 4}, ramp(8)),
                 {"wrong 'blk.0.ssm_beta.weight' has shape [4, 2]; expected [2, 4]"});
  expect_refused(mini_gguf().tensor("blk.1.attn_kv_b.weight", {5, 10}, ramp(50)), {"stand for the same weights"});
  expect_refused(mini_gguf().without_tensor("blk.1.ffn_up_exps.weight").tensor("blk.1.ffn_up_exps.weight", {4, 18}, ramp(72)),
                 {"'blk.1.ffn_up_exps.weight' has shape [18, 4]; expected three axes"});
  expect_refused(mini_gguf().without_tensor("blk.1.attn_v_b.weight").tensor("blk.1.attn_v_b.weight", {2, 5, 2}, ramp(20)),
                 {"'blk.1.attn_v_b.weight' has shape [2, 5, 2]; expected [2, 2, 5]"});
}

TEST(GgufNames, ParametersAreOfNoBlocks) {
  GgufBuilder file = mini_gguf().without_tensor("blk.0.attn_norm.weight");
  file.tensor("blk.0.attn_norm.weight", {32}, 8, std::vector<std::byte>(34));
  expect_refused(file, {"'blk.0.attn_norm.weight' has dtype q8_0; expected one of"});
}

TEST(GgufNames, WhatIsMadeIsMadeOnceWhoeverAsks) {
  const Opened opened = open(mini_gguf());
  const std::string name = "model.layers.1.self_attn.kv_b_proj.weight";
  std::vector<const std::byte*> seen(4);
  std::vector<std::thread> threads;
  for (const std::byte*& data : seen) threads.emplace_back([&] { data = opened.published->require(name).bytes.data(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1u);
}

}  // namespace
}  // namespace kilin

#include "loading/export_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "checkpoint/gguf_file.h"
#include "checkpoint/safetensors_writer.h"
#include "core/error.h"
#include "core/file.h"
#include "gguf/names.h"
#include "support/golden.h"
#include "support/mini_gguf.h"
#include "weights/encode_row.h"
#include "weights/stored_values.h"
#include "weights/weight_use.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

std::shared_ptr<const ModelFiles> golden_model() {
  return ModelFiles::open(testing::in_repository("tests/golden/tiny-kimi-linear"));
}
std::shared_ptr<const ModelFiles> tiny_model() { return ModelFiles::open(testing::in_repository("models/tiny")); }

std::shared_ptr<const ModelFiles> exported(const ModelFiles& files, const fs::path& to, std::optional<QuantType> type,
                                           Rounding rounding = Rounding::Searched) {
  ThreadPool pool(2);
  GgufExport(export_source(files), {.type = type, .rounding = rounding, .name = "test"}).write(to, pool);
  return ModelFiles::open(to);
}

std::vector<float> values_of(const StoredTensor& tensor) {
  std::vector<float> values(tensor.elements());
  read_values(tensor, 0, values.size(), values.data());
  return values;
}

// Root of the mean square of the difference, relative to that of the values.
double difference(const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0, square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(got[i] - want[i]), 2);
    square += std::pow(static_cast<double>(want[i]), 2);
  }
  return square == 0 ? error : std::sqrt(error / square);
}

// What the configuration says, but for what a GGUF file rounds or does not hold.
ModelConfig comparable(ModelConfig config) {
  config.rms_norm_eps = static_cast<double>(static_cast<float>(config.rms_norm_eps));
  config.routed_scaling_factor = static_cast<double>(static_cast<float>(config.routed_scaling_factor));
  if (config.eos_token_ids.size() > 2) config.eos_token_ids.resize(2);
  config.dtype.clear();
  return config;
}

TEST(GgufExport, AModelThatLlamaCppWouldRunWronglyIsForKilinAlone) {
  const TemporaryFolder folder;
  GgufExportSource source = export_source(*golden_model());
  source.config.moe_renormalize = false;
  try {
    GgufExport(source, {.type = {}, .name = "test"});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Unsupported);
    EXPECT_NE(std::string(error.what()).find("moe_renormalize is false"), std::string::npos) << error.what();
  }
  ThreadPool pool(1);
  GgufExport(source, {.type = {}, .name = "test", .readers = GgufReaders::KilinOnly}).write(folder / "x.gguf", pool);
  EXPECT_FALSE(ModelFiles::open(folder / "x.gguf")->config().moe_renormalize);
}

TEST(GgufExport, OfBf16BringsEveryWeightBack) {
  for (const auto& files : {golden_model(), tiny_model()}) {
    const TemporaryFolder folder;
    const ModelConfig config = files->config();
    const auto back = exported(*files, folder / "x.gguf", std::nullopt);
    EXPECT_EQ(comparable(back->config()), comparable(config)) << files->path();
    const auto before = files->weights(config), after = back->weights(config);
    check_tensors(*after, config);
    for (const std::string& name : before->names()) {
      const auto want = values_of(before->require(name)), got = values_of(after->require(name));
      if (name.ends_with(".A_log"))
        EXPECT_LT(difference(got, want), 1e-6) << name;  // through -exp and back
      else
        EXPECT_EQ(got, want) << name;
    }
  }
}

TEST(GgufExport, CarriesTheTokenizer) {
  const TemporaryFolder folder;
  const auto files = tiny_model();
  const auto back = exported(*files, folder / "x.gguf", QuantType::q8_0);
  const auto want = files->tokenizer(), got = back->tokenizer();
  ASSERT_NE(got, nullptr);
  ASSERT_EQ(got->size(), want->size());
  for (int32_t id = 0; id < static_cast<int32_t>(want->size()); ++id) {
    ASSERT_EQ(got->token_bytes(id), want->token_bytes(id)) << id;
    ASSERT_EQ(got->is_special(id), want->is_special(id)) << id;
  }
  const std::string text = "And the whale, 鯨, said: \"12345\"\n\n  <|im_end|>";
  EXPECT_EQ(got->encode(text), want->encode(text));
  EXPECT_EQ(back->foreign_chat_format(*got), std::nullopt);
}

TEST(GgufExport, PlansWhatTheMixSaysAndLeavesTheRest) {
  const auto files = tiny_model();
  const ModelConfig config = files->config();
  for (const QuantType type : {QuantType::q8_0, QuantType::q6_k, QuantType::q5_k_m, QuantType::q4_k_m, QuantType::q4_0}) {
    const QuantMix mix(type, config.num_hidden_layers);
    std::map<std::string, StorageFormat> formats;
    const GgufExport gguf(export_source(*files), {.type = type, .name = "x"});
    for (const auto& tensor : gguf.tensors()) formats.emplace(tensor.name, tensor.format);
    for (const ExpectedTensor& tensor : expected_tensors(config)) {
      const StorageFormat got = formats.at(gguf_name(tensor.name));
      const auto want =
          use_of(*tensor.pattern) == WeightUse::Table ? mix.format_of_table(tensor.shape[1]) : mix.format_of(tensor);
      EXPECT_EQ(got.is_block(), want.has_value()) << to_string(type) << " " << tensor.name;
      if (want) {
        EXPECT_EQ(got, *want) << to_string(type) << " " << tensor.name;
      }
    }
  }
}

TEST(GgufExport, RoundsMatricesAndNothingElse) {
  const TemporaryFolder folder;
  const auto files = tiny_model();
  const ModelConfig config = files->config();
  const auto before = files->weights(config), after = exported(*files, folder / "x.gguf", QuantType::q4_k_m)->weights(config);
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    const StoredTensor want = before->require(tensor.name), got = after->require(tensor.name);
    // Gaussian values err by 0.071 in q4_k.
    EXPECT_LT(difference(values_of(got), values_of(want)), got.format.is_block() ? 0.1 : 1e-6) << tensor.name;
  }
}

TEST(GgufExport, SearchedRoundingErrsLess) {
  const TemporaryFolder folder;
  const auto files = tiny_model();
  const ModelConfig config = files->config();
  const auto searched = exported(*files, folder / "s.gguf", QuantType::q4_k_m)->weights(config);
  const auto nearest = exported(*files, folder / "n.gguf", QuantType::q4_k_m, Rounding::Nearest)->weights(config);
  const std::string name = "model.layers.1.self_attn.q_proj.weight";
  const auto want = values_of(files->weights(config)->require(name));
  EXPECT_LT(difference(values_of(searched->require(name)), want), 0.95 * difference(values_of(nearest->require(name)), want));
}

TEST(GgufExport, OfTheSameTypeCopiesBlocksBitForBit) {
  const TemporaryFolder folder;
  const auto first = exported(*tiny_model(), folder / "1.gguf", QuantType::q4_k_m);
  const auto second = exported(*first, folder / "2.gguf", QuantType::q4_k_m);
  const ModelConfig config = first->config();
  const auto one = first->weights(config), two = second->weights(config);
  for (const std::string& name : one->names()) {
    const StoredTensor a = one->require(name), b = two->require(name);
    ASSERT_EQ(a.format, b.format) << name;
    if (!a.format.is_block()) continue;
    EXPECT_EQ(std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()), 0) << name;
  }
}

TEST(GgufExport, HasTheShapesAndFormatsThatLlamaCppWants) {
  const TemporaryFolder folder;
  const auto files = golden_model();
  const ModelConfig c = files->config();
  exported(*files, folder / "x.gguf", QuantType::q4_0);
  const auto file = GgufFile::open(folder / "x.gguf");
  size_t kda = 0, mla = 0, moe = 0;
  for (size_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const std::string block = fmt::format("blk.{}.", layer);
    if (c.is_kda(layer) && kda++ == 0) {
      EXPECT_EQ(file->require(block + "ssm_conv1d_q.weight").shape, (Shape{1, c.kda_width(), 1, c.short_conv_kernel_size}));
      EXPECT_EQ(file->require(block + "ssm_a").shape, (Shape{c.kda_num_heads, 1}));
      EXPECT_EQ(file->require(block + "ssm_dt.bias").shape, (Shape{c.kda_width()}));
      for (const char* name : {"ssm_conv1d_k.weight", "ssm_a", "ssm_dt.bias", "ssm_norm.weight", "attn_norm.weight"})
        EXPECT_EQ(file->require(block + name).format, DType::f32) << name;
      for (float a : values_of(file->require(block + "ssm_a"))) EXPECT_LT(a, 0);
    }
    if (c.is_mla(layer) && mla++ == 0) {
      EXPECT_EQ(file->require(block + "attn_k_b.weight").shape,
                (Shape{c.num_attention_heads, c.kv_lora_rank, c.qk_nope_head_dim}));
      EXPECT_EQ(file->require(block + "attn_v_b.weight").shape, (Shape{c.num_attention_heads, c.v_head_dim, c.kv_lora_rank}));
      EXPECT_FALSE(file->contains(block + "attn_kv_b.weight"));
    }
    if (c.is_moe(layer) && moe++ == 0) {
      EXPECT_EQ(file->require(block + "ffn_down_exps.weight").shape,
                (Shape{c.num_experts, c.hidden_size, c.moe_intermediate_size}));
      for (const char* name : {"ffn_gate_inp.weight", "exp_probs_b.bias"})
        EXPECT_EQ(file->require(block + name).format, DType::f32) << name;
    }
  }
  EXPECT_GT(kda * mla * moe, 0u);
}

TEST(GgufExport, OfTiedEmbeddingsHasAnOutputOfItsOwn) {
  const TemporaryFolder folder;
  testing::mini_gguf().without_tensor("output.weight").write(folder / "tied.gguf");
  const auto files = ModelFiles::open(folder / "tied.gguf");
  ASSERT_TRUE(files->config().tie_word_embeddings);
  const auto back = exported(*files, folder / "x.gguf", std::nullopt);
  const auto weights = back->weights(back->config());
  EXPECT_EQ(values_of(weights->require("lm_head.weight")), values_of(weights->require("model.embed_tokens.weight")));
}

constexpr const char* kOddExpert = "model.layers.1.block_sparse_moe.experts.1.w1.weight";

// The golden model in bf16, but for one expert that is f16 or f32 and begins with `value`.
std::shared_ptr<const ModelFiles> with_an_odd_expert(const fs::path& folder, DType dtype, float value) {
  const auto files = golden_model();
  const auto weights = files->weights(files->config());
  fs::create_directory(folder);
  fs::copy_file(files->path() / "config.json", folder / "config.json");
  std::vector<SafetensorsWriter::Planned> plan;
  for (const std::string& name : weights->names())
    plan.push_back({name, name == kOddExpert ? dtype : DType::bf16, weights->require(name).shape});
  SafetensorsWriter writer(folder, plan, UINT64_MAX);
  for (const auto& tensor : writer.tensors()) {
    auto values = values_of(weights->require(tensor.name));
    if (tensor.name == kOddExpert) values[0] = value;
    std::vector<std::byte> bytes(tensor.bytes());
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t half = tensor.dtype == DType::f16 ? to_f16(values[i]).bits : to_bf16(values[i]).bits;
      if (tensor.dtype == DType::f32)
        std::memcpy(&bytes[4 * i], &values[i], 4);
      else
        std::memcpy(&bytes[2 * i], &half, 2);
    }
    writer.write(tensor.name, bytes);
  }
  writer.commit();
  return ModelFiles::open(folder);
}

TEST(GgufExport, ExpertsMayBeStoredInSeveralFormats) {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::f16, DType::f32}) {
    const std::string name(to_string(dtype));
    const auto files = with_an_odd_expert(folder / name, dtype, 0.5f);
    const auto back = exported(*files, folder / (name + ".gguf"), std::nullopt);
    const auto before = files->weights(files->config()), after = back->weights(back->config());
    for (const std::string& tensor : before->names()) {
      if (tensor.find(".experts.") == std::string::npos) continue;
      EXPECT_LT(difference(values_of(after->require(tensor)), values_of(before->require(tensor))), 1e-2) << name << tensor;
    }
  }
}

TEST(GgufExport, RefusesWhatAFormatCannotHoldByTheNameOfItsTensor) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, float value, std::optional<QuantType> type) {
    try {
      exported(*with_an_odd_expert(folder / name, DType::f32, value), folder / "x.gguf", type);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(refusal("a", NAN, std::nullopt).find(kOddExpert), std::string::npos);
  EXPECT_NE(refusal("b", 3.4e38f, std::nullopt).find(kOddExpert), std::string::npos) << "would become infinite";
  EXPECT_NE(refusal("c", -1e6f, QuantType::q8_0).find("holds -1000000"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "x.gguf"));
}

TEST(GgufExport, AFailureLeavesNothing) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  const GgufExport gguf(export_source(*golden_model()), {.type = QuantType::q4_0, .name = "x"});
  EXPECT_THROW(gguf.write(folder / "x.gguf", pool,
                          [](uint64_t done, uint64_t total) {
                            if (2 * done > total) raise(ErrorCode::Io, "enough");
                          }),
               Error);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(GgufExport, ThreadsChangeNoByte) {
  const TemporaryFolder folder;
  for (const size_t threads : {1, 3}) {
    ThreadPool pool(threads);
    GgufExport(export_source(*golden_model()), {.type = QuantType::q6_k, .name = "x"})
        .write(folder / std::to_string(threads), pool);
  }
  EXPECT_EQ(read_file(folder / "1"), read_file(folder / "3"));
}

}  // namespace
}  // namespace kilin

#include "checkpoint/gguf_writer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "checkpoint/gguf_file.h"
#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

using testing::TemporaryFolder;

std::vector<std::byte> counted(size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = std::byte(i * 7 + 1);
  return data;
}

GgufKeys some_keys() {
  GgufKeys keys;
  keys.add_string("general.architecture", "kimi-linear");
  keys.add_u32("u", 4000000000);
  keys.add_i32("i", -3);
  keys.add_f32("f", 1e-5f);
  keys.add_bool("b", true);
  keys.add_i32s("is", std::vector<int32_t>{0, -1, 1});
  keys.add_strings("ss", std::vector<std::string>{"", "two words"});
  return keys;
}

std::vector<GgufWriter::Planned> some_tensors() {
  return {{"b", BlockFormat::q4_k, {3, 512}}, {"a", DType::f32, {5}}, {"c", DType::bf16, {2, 1, 7}}};
}

void write_all(GgufWriter& writer) {
  for (const auto& tensor : writer.tensors()) writer.write(tensor.name, counted(tensor.bytes()));
}

TEST(GgufWriter, WhatItWritesTheReaderReads) {
  const TemporaryFolder folder;
  GgufWriter writer(folder / "m.gguf", some_keys(), some_tensors());
  write_all(writer);
  EXPECT_FALSE(std::filesystem::exists(folder / "m.gguf"));
  writer.commit();
  EXPECT_EQ(std::filesystem::file_size(folder / "m.gguf"), writer.bytes());

  const auto file = GgufFile::open(folder / "m.gguf");
  EXPECT_EQ(file->names(), (std::vector<std::string>{"a", "b", "c"}));
  for (const auto& planned : some_tensors()) {
    const StoredTensor tensor = file->require(planned.name);
    EXPECT_EQ(tensor.format, planned.format);
    EXPECT_EQ(tensor.shape, planned.shape);
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, counted(planned.bytes())));
  }
  const auto value = [&](const char* key) { return *file->metadata().find(key); };
  EXPECT_EQ(*value("u").as<uint64_t>(), 4000000000u);
  EXPECT_EQ(*value("i").as<int64_t>(), -3);
  EXPECT_EQ(value("f").type, GgufType::f32);
  EXPECT_EQ(static_cast<float>(*value("f").as<double>()), 1e-5f);
  EXPECT_TRUE(*value("b").as<bool>());
  EXPECT_EQ(*value("is").as<GgufArray>()->at(1).as<int64_t>(), -1);
  EXPECT_EQ(value("ss").as<GgufArray>()->strings()[1], "two words");
}

TEST(GgufWriter, CopiesValuesOfEveryTypeByteForByte) {
  const TemporaryFolder folder;
  GgufKeys keys = some_keys();
  for (const GgufType type :
       {GgufType::u8, GgufType::i8, GgufType::u16, GgufType::i16, GgufType::u64, GgufType::i64, GgufType::f64}) {
    const auto bytes = counted(8);
    keys.copy(to_string(type), read_gguf_scalar(type, bytes.data()));
  }
  GgufWriter(folder / "a.gguf", keys, {}).commit();
  const auto first = GgufFile::open(folder / "a.gguf");
  GgufKeys copied;
  for (const auto& [key, value] : first->metadata().values()) copied.copy(key, value);
  EXPECT_EQ(copied.size(), keys.size());
  GgufWriter(folder / "b.gguf", copied, {}).commit();
  const auto second = GgufFile::open(folder / "b.gguf");
  GgufKeys again;
  for (const auto& [key, value] : second->metadata().values()) {
    EXPECT_EQ(value.type, first->metadata().find(key)->type) << key;
    again.copy(key, value);
  }
  EXPECT_EQ(again.bytes(), copied.bytes());
  EXPECT_EQ(*second->metadata().find("i64")->as<int64_t>(), *first->metadata().find("i64")->as<int64_t>());
}

TEST(GgufWriter, TensorsMayComeInPieces) {
  const TemporaryFolder folder;
  GgufWriter writer(folder / "m.gguf", GgufKeys(), {{"a", DType::f32, {100}}});
  const auto data = counted(400);
  writer.write("a", std::span(data).first(123));
  writer.write("a", std::span(data).subspan(123));
  writer.commit();
  EXPECT_TRUE(std::ranges::equal(GgufFile::open(folder / "m.gguf")->require("a").bytes, data));
}

TEST(GgufWriter, WithoutCommitNoFileStaysAndNothingThatLoads) {
  const TemporaryFolder folder;
  {
    GgufWriter writer(folder / "m.gguf", some_keys(), some_tensors());
    write_all(writer);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) EXPECT_FALSE(is_gguf(entry.path()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(GgufWriter, TensorsOutOfTurnBeyondTheirSizeOrMissingAreRefused) {
  const TemporaryFolder folder;
  GgufWriter writer(folder / "m.gguf", some_keys(), some_tensors());
  EXPECT_THROW(writer.write("a", counted(4)), Error);
  EXPECT_THROW(writer.write("b", counted(10000)), Error);
  EXPECT_THROW(writer.commit(), Error);
  write_all(writer);
  EXPECT_THROW(writer.write("c", counted(1)), Error);
  writer.commit();
}

TEST(GgufWriter, PlansThatNoReaderWouldTakeAreRefused) {
  const TemporaryFolder folder;
  const auto refused = [&](std::vector<GgufWriter::Planned> plan) {
    EXPECT_THROW(GgufWriter(folder / "m.gguf", GgufKeys(), std::move(plan)), Error);
  };
  refused({{"a", DType::f32, {1}}, {"a", DType::f32, {1}}});
  refused({{"", DType::f32, {1}}});
  refused({{"a", DType::u8, {1}}});
  refused({{"a", DType::f32, {}}});
  refused({{"a", DType::f32, {3, 0}}});
  refused({{"a", BlockFormat::q8_0, {2, 48}}});
  GgufKeys keys;
  keys.add_u32("k", 1);
  EXPECT_THROW(keys.add_bool("k", true), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace kilin

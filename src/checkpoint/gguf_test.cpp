#include "checkpoint/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/file.h"
#include "support/gguf.h"
#include "support/golden.h"

namespace kilin {
namespace {

using testing::Bytes;
using testing::GgufBuilder;

std::vector<std::byte> zeros(size_t bytes) { return std::vector<std::byte>(bytes); }

GgufContents parse(const GgufBuilder& file) {
  static std::vector<std::byte> bytes;  // outlives what refers to it
  bytes = file.bytes();
  return parse_gguf(bytes, "file");
}

// That a file is refused with this code, and in these words.
void expect_refused(const std::vector<std::byte>& bytes, ErrorCode code, const std::string& words) {
  try {
    parse_gguf(bytes, "file");
    ADD_FAILURE() << "not refused; expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what() << "\nexpected: " << words;
  }
}
void expect_refused(const GgufBuilder& file, ErrorCode code, const std::string& words) {
  expect_refused(file.bytes(), code, words);
}

TEST(Gguf, GivesTensorsByNameWithRowMajorShapesAndTheirBytes) {
  std::vector<std::byte> blocks(4 * 18);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = std::byte(i);
  GgufBuilder file;
  file.tensor("b", {64, 2}, 2, blocks).tensor("a", {3}, {1, 2, 3}).tensor("c", {4, 1, 2, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  const GgufContents contents = parse(file);
  ASSERT_EQ(contents.tensors.size(), 3u);
  EXPECT_EQ(contents.tensors[0].name, "a");
  EXPECT_EQ(contents.tensors[0].format, DType::f32);
  EXPECT_EQ(contents.tensors[0].shape, (Shape{3}));
  EXPECT_EQ(contents.tensors[1].format, BlockFormat::q4_0);
  EXPECT_EQ(contents.tensors[1].shape, (Shape{2, 64}));
  EXPECT_TRUE(std::ranges::equal(contents.tensors[1].bytes, blocks));
  EXPECT_EQ(contents.tensors[1].file, "file");
  EXPECT_EQ(contents.tensors[2].shape, (Shape{1, 2, 1, 4}));
}

TEST(Gguf, GivesValuesOfEveryType) {
  GgufBuilder file;
  file.raw_key("u8", 0, Bytes().add(uint8_t{200})).raw_key("i8", 1, Bytes().add(int8_t{-3}));
  file.raw_key("u16", 2, Bytes().add(uint16_t{60000})).raw_key("i16", 3, Bytes().add(int16_t{-30000}));
  file.key("u32", uint32_t{4000000000}).key("i32", int32_t{-5}).key("f32", 1.5f).key("true", true).key("text", "word");
  file.raw_key("u64", 10, Bytes().add(UINT64_MAX)).raw_key("i64", 11, Bytes().add(INT64_MIN));
  file.raw_key("f64", 12, Bytes().add(0.1));
  file.key("ints", std::vector<int32_t>{1, -2}).key("texts", std::vector<std::string>{"a", "", "bc"});
  file.raw_key("bools", 9, Bytes().add(uint32_t{7}).add(uint64_t{2}).add(uint8_t{1}).add(uint8_t{0}));
  const GgufContents contents = parse(file);
  const auto value = [&](const char* key) { return *contents.metadata.find(key); };
  EXPECT_EQ(*value("u8").as<uint64_t>(), 200u);
  EXPECT_EQ(*value("i8").as<int64_t>(), -3);
  EXPECT_EQ(*value("u16").as<uint64_t>(), 60000u);
  EXPECT_EQ(*value("i16").as<int64_t>(), -30000);
  EXPECT_EQ(*value("u32").as<uint64_t>(), 4000000000u);
  EXPECT_EQ(value("u32").type, GgufType::u32);
  EXPECT_EQ(*value("i32").as<int64_t>(), -5);
  EXPECT_EQ(*value("f32").as<double>(), 1.5);
  EXPECT_TRUE(*value("true").as<bool>());
  EXPECT_EQ(*value("text").as<std::string_view>(), "word");
  EXPECT_EQ(*value("u64").as<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(*value("i64").as<int64_t>(), INT64_MIN);
  EXPECT_EQ(*value("f64").as<double>(), 0.1);
  EXPECT_EQ(*value("ints").as<GgufArray>()->at(1).as<int64_t>(), -2);
  EXPECT_EQ(value("texts").as<GgufArray>()->strings(), (std::vector<std::string_view>{"a", "", "bc"}));
  EXPECT_TRUE(*value("bools").as<GgufArray>()->at(0).as<bool>());
  EXPECT_FALSE(*value("bools").as<GgufArray>()->at(1).as<bool>());
  EXPECT_EQ(value("text").as<double>(), nullptr);
  EXPECT_EQ(contents.metadata.find("other"), nullptr);
}

TEST(Gguf, Version2IsReadAndOthersAreRefusedByName) {
  GgufBuilder file;
  file.version = 2;
  EXPECT_EQ(parse(file).version, 2u);
  file.version = 1;
  expect_refused(file, ErrorCode::Unsupported, "version 1");
  file.version = 4;
  expect_refused(file, ErrorCode::Unsupported, "version 4");
  file.version = 0x03000000;
  expect_refused(file, ErrorCode::Unsupported, "big-endian");
  expect_refused(zeros(24), ErrorCode::Corrupt, "expected a GGUF file");
}

TEST(Gguf, EveryCutOfAFileIsRefused) {
  GgufBuilder file;
  file.key("text", "word").key("texts", std::vector<std::string>{"a", "bc"}).key("ints", std::vector<int32_t>{1, 2, 3});
  file.tensor("a", {3}, {1, 2, 3}).tensor("b", {2}, {1, 2});
  const auto bytes = file.bytes();
  EXPECT_EQ(parse_gguf(bytes, "file").tensors.size(), 2u);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parse_gguf(std::span(bytes).first(size), "file"), Error) << size;
}

TEST(Gguf, CountsAndLengthsBeyondTheFileAreRefusedBeforeAnythingIsAllocated) {
  GgufBuilder file;
  file.tensor_count = UINT64_MAX;
  expect_refused(file, ErrorCode::Corrupt, "18446744073709551615 tensors");
  file.tensor_count = 0;
  file.key_count = uint64_t{1} << 40;
  expect_refused(file, ErrorCode::Corrupt, "1099511627776 keys");
  expect_refused(GgufBuilder().raw_key("k", 8, Bytes().add(UINT64_MAX - 3)), ErrorCode::Corrupt, "key 'k'");
  expect_refused(GgufBuilder().raw_key("k", 9, Bytes().add(uint32_t{4}).add(uint64_t{1} << 62)), ErrorCode::Corrupt,
                 "4611686018427387904 elements of type u32");
  expect_refused(GgufBuilder().raw_key("k", 9, Bytes().add(uint32_t{8}).add(UINT64_MAX)), ErrorCode::Corrupt,
                 "elements of type string");
}

TEST(Gguf, KeysThatBreakTheFormatAreRefused) {
  expect_refused(GgufBuilder().raw_key("k", 13, Bytes()), ErrorCode::Corrupt, "key 'k' has a value of type 13");
  expect_refused(GgufBuilder().raw_key("k", 7, Bytes().add(uint8_t{2})), ErrorCode::Corrupt, "bool of value 2");
  expect_refused(GgufBuilder().raw_key("k", 9, Bytes().add(uint32_t{7}).add(uint64_t{1}).add(uint8_t{9})), ErrorCode::Corrupt,
                 "bool of value 9");
  expect_refused(GgufBuilder().raw_key("k", 9, Bytes().add(uint32_t{9}).add(uint64_t{1}).zeros(64)), ErrorCode::Unsupported,
                 "array of arrays");
  expect_refused(GgufBuilder().key("", true), ErrorCode::Corrupt, "has 0 bytes");
  GgufBuilder twice;
  twice.raw_key("k", 7, Bytes().add(uint8_t{1}).string("k").add(uint32_t{7}).add(uint8_t{1}));
  twice.key_count = 2;
  expect_refused(twice, ErrorCode::Corrupt, "key 'k' stands twice");
}

TEST(Gguf, TheAlignmentMayBeAnyNumber) {
  for (const uint32_t alignment : {1u, 2u, 7u, 24u, 64u, 4096u}) {
    GgufBuilder file;
    file.alignment = alignment;
    file.key("general.alignment", alignment).tensor("a", {3}, 24, {std::byte{1}, std::byte{2}, std::byte{3}});
    const auto b = parse(file.tensor("b", {1}, {4})).tensors[1].bytes;
    ASSERT_EQ(b.size(), sizeof(float));
    float value = 0;
    std::memcpy(&value, b.data(), sizeof value);
    EXPECT_EQ(value, 4.0f) << alignment;
  }
  GgufBuilder file;
  for (const uint32_t wrong : {0u, 1u << 30})
    expect_refused(file.key("general.alignment", wrong), ErrorCode::Corrupt, "expected 1 to 1048576");
  expect_refused(file.key("general.alignment", 32.0f), ErrorCode::Corrupt, "of type f32");
}

TEST(Gguf, TensorsThatBreakTheFormatAreRefused) {
  const auto one = [](const std::vector<uint64_t>& extents, uint32_t type, size_t bytes, uint64_t offset = 0) {
    return GgufBuilder().tensor("t", extents, type, zeros(bytes), offset);
  };
  expect_refused(one({}, 0, 4), ErrorCode::Corrupt, "tensor 't' has 0 axes");
  expect_refused(one({1, 1, 1, 1, 1}, 0, 4), ErrorCode::Corrupt, "has 5 axes");
  expect_refused(one({4, 0}, 0, 4), ErrorCode::Corrupt, "extent 0");
  expect_refused(one({uint64_t{1} << 33, uint64_t{1} << 33}, 0, 4), ErrorCode::Corrupt, "overflows");
  expect_refused(one({uint64_t{1} << 62}, 0, 4), ErrorCode::Corrupt, "64 bits");
  expect_refused(one({48, 2}, 2, 54), ErrorCode::Corrupt, "rows of 48 elements; expected a multiple of 32");
  expect_refused(one({128, 2}, 12, 144), ErrorCode::Corrupt, "expected a multiple of 256");
  expect_refused(one({4}, 0, 16, 8), ErrorCode::Corrupt, "a multiple of 32");
  expect_refused(one({4}, 0, 16, 64), ErrorCode::Corrupt, "is it truncated");
  expect_refused(one({4}, 0, 16, UINT64_MAX - 31), ErrorCode::Corrupt, "is it truncated");
  expect_refused(one({4}, 0, 16).tensor("t", {4}, 0, zeros(16)), ErrorCode::Corrupt, "stands twice");
  expect_refused(one({16}, 0, 64).tensor("u", {8}, 0, zeros(32), 32), ErrorCode::Corrupt, "'t' and 'u' overlap");
}

TEST(Gguf, ABrokenTensorOfALongNameInAFileOfALongNameIsRefused) {
  const std::string name(100, 'n'), source(100, 's');  // too long to lie inside of a string
  const auto bytes = GgufBuilder().tensor(name, {48, 2}, 2, zeros(54)).bytes();
  EXPECT_THROW(parse_gguf(bytes, source), Error);
  const auto larger = GgufBuilder().tensor(name, {uint64_t{1} << 62}, 0, zeros(4)).bytes();
  EXPECT_THROW(parse_gguf(larger, source), Error);
}

TEST(Gguf, BlockTypesThatAreNotReadAreRefusedByName) {
  for (const auto& [number, name] : std::vector<std::pair<uint32_t, std::string>>{
           {16, "IQ2_XXS"}, {19, "IQ1_S"}, {21, "IQ3_S"}, {34, "TQ1_0"}, {40, "NVFP4"}, {31, "Q4_0_4_4"}, {99, "type 99"}}) {
    const GgufBuilder file = GgufBuilder().tensor("blk.0.attn_q.weight", {256}, number, zeros(256));
    expect_refused(file, ErrorCode::Unsupported, "tensor 'blk.0.attn_q.weight' is of " + name);
    expect_refused(file, ErrorCode::Unsupported, "Q4_K_M");
  }
}

TEST(Gguf, EveryStorageFormatHasItsNumber) {
  for (const BlockFormat format : kBlockFormats) EXPECT_EQ(gguf_storage_format(*gguf_number(format)), StorageFormat(format));
  EXPECT_EQ(gguf_number(DType::bf16), 30u);
  EXPECT_EQ(gguf_number(DType::boolean), std::nullopt);
  EXPECT_EQ(gguf_type_name(12), "Q4_K");
}

TEST(Gguf, GoldenFilesHoldTheirTensorsInTheFormatsOfTheirNames) {
  std::string missing;
  for (const BlockFormat format : kBlockFormats) {
    const std::string name(to_string(format));
    std::optional<std::filesystem::path> found = testing::golden("gguf/mini-" + name + ".gguf");
    if (!found) found = testing::golden("gguf/mini-" + name + "_m.gguf");
    if (!found) {
      missing += " " + name;
      continue;
    }
    const std::filesystem::path& file = *found;
    const MappedFile mapped(file);
    const GgufContents contents = parse_gguf(mapped.bytes(), file.string());
    EXPECT_EQ(contents.tensors.size(), 89u) << file;
    EXPECT_EQ(*contents.metadata.find("general.architecture")->as<std::string_view>(), "kimi-linear");
    EXPECT_EQ(contents.metadata.find("tokenizer.ggml.tokens")->as<GgufArray>()->strings().size(), 1024u);
    EXPECT_TRUE(std::ranges::any_of(contents.tensors, [&](const StoredTensor& t) { return t.format == format; })) << file;
  }
  if (!missing.empty()) GTEST_SKIP() << "golden files are not here:" << missing;
}

}  // namespace
}  // namespace kilin

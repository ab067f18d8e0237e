#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "support/golden.h"

namespace kilin {
namespace {

using testing::TemporaryFolder;

// A file with this header and so many bytes of data, 0, 1, 2, ...
std::vector<std::byte> file_of(const std::string& header, size_t data_bytes) {
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  for (size_t i = 0; i < 8; ++i) file[i] = std::byte(header.size() >> (8 * i));
  std::memcpy(file.data() + 8, header.data(), header.size());
  for (size_t i = 0; i < data_bytes; ++i) file[8 + header.size() + i] = std::byte(i);
  return file;
}

// Pads a header so that the data begins at a multiple of 8, as writers do.
std::string padded(std::string header) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

SafetensorsHeader parse(const std::string& header, size_t data_bytes) {
  const auto file = file_of(padded(header), data_bytes);
  return parse_safetensors(file, "file");
}

TEST(Safetensors, NothingNeedsToBeAligned) {
  std::string header =
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"y":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  for (size_t odd = 0; odd < 8; ++odd, header += ' ') {
    const auto file = file_of(header, 5);
    const SafetensorsHeader parsed = parse_safetensors(file, "file");
    EXPECT_EQ(parsed.tensors[1].bytes.front(), std::byte{1});
    EXPECT_EQ(parsed.tensors[1].bytes.back(), std::byte{4});
  }
}

TEST(Safetensors, GivesEveryTensorItsDtypeShapeAndBytes) {
  const auto file =
      file_of(padded(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
                     R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                     R"("none":{"dtype":"I64","shape":[0,7],"data_offsets":[8,8]},)"
                     R"("scalar":{"dtype":"U8","shape":[],"data_offsets":[20,21]}})"),
              21);
  const SafetensorsHeader header = parse_safetensors(file, "file");
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].format, DType::f32);
  EXPECT_EQ(header.tensors[0].bytes.size(), 8u);
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].format, DType::bf16);
  EXPECT_EQ(header.tensors[1].shape, (Shape{2, 3}));
  EXPECT_EQ(header.tensors[1].bytes[0], std::byte(8));
  EXPECT_EQ(header.tensors[1].bytes[11], std::byte(19));
  EXPECT_EQ(header.tensors[1].file, "file");
  EXPECT_EQ(header.tensors[2].elements(), 0u);
  EXPECT_EQ(header.tensors[3].shape.rank(), 0u);
  EXPECT_EQ(header.tensors[3].bytes[0], std::byte(20));
}

TEST(Safetensors, KnowsEveryElementwiseDtypeByItsName) {
  for (const char* name : {"BF16", "F16", "F32", "F64", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "BOOL"}) {
    const std::string one = R"({"x":{"dtype":")" + std::string(name) + R"(","shape":[1],"data_offsets":[0,)";
    size_t sizes = 0;
    for (size_t size : {1, 2, 4, 8}) {
      try {
        const auto header = parse(one + std::to_string(size) + "]}}", size);
        EXPECT_EQ(safetensors_dtype(header.tensors.at(0).format.dtype()), name);
        EXPECT_EQ(header.tensors.at(0).format.bytes_of(1), size);
        ++sizes;
      } catch (const Error&) {
      }
    }
    EXPECT_EQ(sizes, 1u) << name;
  }
}

struct BadHeader {
  const char* header;
  size_t data_bytes;
  ErrorCode code;
  std::vector<const char*> words;  // that the message must hold
};

TEST(Safetensors, RefusesHostileHeadersByName) {
  const ErrorCode corrupt = ErrorCode::Corrupt, unsupported = ErrorCode::Unsupported;
  const BadHeader cases[] = {
      // JSON
      {"[]", 0, corrupt, {"begin with '{'"}},
      {R"({"x":)", 0, corrupt, {"not valid JSON"}},
      {R"({}{})", 0, corrupt, {"not valid JSON"}},
      {R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2,
       corrupt,
       {"'x'", "twice"}},
      {R"({"x":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1, corrupt, {"'dtype'", "twice"}},
      {"{\"\xff\":{}}", 0, corrupt, {"not valid JSON"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"y":1}})", 4, corrupt, {"'x'", "'y'"}},
      {R"({"x":5})", 0, corrupt, {"'x'", "is 5", "object"}},
      {R"({"x":null})", 0, corrupt, {"'x'", "object"}},
      // dtype
      {R"({"x":{"shape":[1],"data_offsets":[0,4]}})", 4, corrupt, {"'x'", "no dtype"}},
      {R"({"x":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, corrupt, {"'x'", "dtype 7"}},
      {R"({"w.8":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4, unsupported, {"'w.8'", "F8_E4M3", "BF16"}},
      {R"({"x":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4, unsupported, {"'f32'"}},
      {R"({"x":{"dtype":"a\nb","shape":[1],"data_offsets":[0,4]}})", 4, unsupported, {"'a?b'"}},
      // shape
      {R"({"x":{"dtype":"F32","data_offsets":[0,4]}})", 4, corrupt, {"no shape"}},
      {R"({"x":{"dtype":"F32","shape":4,"data_offsets":[0,4]}})", 4, corrupt, {"shape 4", "list"}},
      {R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, corrupt, {"[-1]", "whole"}},
      {R"({"x":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, corrupt, {"[1.0]", "whole"}},
      {R"({"x":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4, corrupt, {"whole"}},
      {R"({"x":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})", 4, corrupt, {"whole"}},
      {R"({"x":{"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]}})", 4, unsupported, {"5 axes", "at most 4"}},
      {R"({"x":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, corrupt, {"overflows"}},
      {R"({"x":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0, corrupt, {"overflows"}},
      {R"({"x":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0, corrupt, {"'x'", "0 bytes"}},
      {R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, corrupt, {"occupies 4", "[2]"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}})", 5, corrupt, {"occupies 5"}},
      // offsets
      {R"({"x":{"dtype":"F32","shape":[1]}})", 4, corrupt, {"no data_offsets"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, corrupt, {"data_offsets [0]"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 8, corrupt, {"data_offsets"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, corrupt, {"data_offsets [-4,0]"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4.0]}})", 4, corrupt, {"data_offsets"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, corrupt, {"data_offsets [4, 0]"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, corrupt, {"[0, 4]", "<= 3"}},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615]}})",
       4,
       corrupt,
       {"data_offsets"}},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3,
       corrupt,
       {"'x'", "'y'", "overlap"}},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
       2,
       corrupt,
       {"'x'", "'y'", "overlap"}},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
       4,
       corrupt,
       {"overlap"}},
      {R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, corrupt, {"[0, 1)", "no tensor"}},
      {R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"y":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3,
       corrupt,
       {"[1, 2)", "no tensor"}},
      {R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 9, corrupt, {"[1, 9)", "no tensor"}},
      // metadata
      {R"({"__metadata__":[]})", 0, corrupt, {"__metadata__", "object"}},
      {R"({"__metadata__":{"a":1}})", 0, corrupt, {"__metadata__", "'a'", "string"}},
  };
  for (const BadHeader& bad : cases) {
    try {
      parse(bad.header, bad.data_bytes);
      ADD_FAILURE() << "accepted: " << bad.header;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), bad.code) << bad.header << "\n" << error.what();
      const std::string message = error.what();
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_TRUE(message.starts_with("file: ")) << message;
      for (const char* word : bad.words)
        EXPECT_NE(message.find(word), std::string::npos) << "no \"" << word << "\" in: " << message;
    }
  }
}

TEST(Safetensors, AFileCutAnywhereIsRefused) {
  const auto file = file_of(padded(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                   R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]}})"),
                            20);
  ASSERT_NO_THROW(parse_safetensors(file, "file"));
  for (size_t n = 0; n < file.size(); ++n) {
    // A buffer of exactly n bytes, so that a sanitiser sees any read beyond it.
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_THROW(parse_safetensors(cut, "file"), Error) << n;
  }
}

TEST(Safetensors, EveryHeaderLengthBeyondTheFileIsRefused) {
  auto file = file_of(padded("{}"), 0);
  ASSERT_NO_THROW(parse_safetensors(file, "file"));
  for (size_t bit = 0; bit < 64; ++bit) {
    auto other = file;
    other[bit / 8] ^= std::byte(1u << (bit % 8));
    EXPECT_THROW(parse_safetensors(other, "file"), Error) << bit;
  }
  std::fill_n(file.begin(), 8, std::byte(0xff));
  EXPECT_THROW(parse_safetensors(file, "file"), Error);
}

TEST(SafetensorsFile, FindsTensorsByNameAndSaysWhichAreNotThere) {
  TemporaryFolder folder;
  const auto bytes = file_of(padded(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})"), 2);
  std::ofstream(folder / "x.safetensors", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto file = SafetensorsFile::open(folder / "x.safetensors");
  EXPECT_EQ(file->names(), std::vector<std::string>{"a"});
  EXPECT_TRUE(file->contains("a"));
  EXPECT_EQ(file->require("a").bytes[1], std::byte(1));
  EXPECT_FALSE(file->find("b"));
  try {
    file->require("b");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::NotFound);
    EXPECT_NE(std::string(error.what()).find("'b'"), std::string::npos);
  }
  EXPECT_THROW(SafetensorsFile::open(folder / "missing.safetensors"), Error);
  std::ofstream(folder / "empty.safetensors").flush();
  EXPECT_THROW(SafetensorsFile::open(folder / "empty.safetensors"), Error);
}

TEST(SafetensorsFile, OpensTheGoldenFiles) {
  GOLDEN_OR_SKIP(path, "kda/01_single_T1.safetensors");
  const auto file = SafetensorsFile::open(path);
  EXPECT_EQ(file->require("hidden_states").shape, (Shape{1, 256}));
  EXPECT_EQ(file->require("cu_seqlens").format, DType::i32);
  EXPECT_EQ(file->require("final_recurrent_state").shape, (Shape{1, 2, 128, 128}));
}

TEST(StoredTensor, RowsAndOtherExtentsAreViewsOfTheSameBytes) {
  const auto header = file_of(padded(R"({"a":{"dtype":"F32","shape":[3,2,1],"data_offsets":[0,24]}})"), 24);
  const StoredTensor tensor = parse_safetensors(header, "file").tensors.at(0);
  const StoredTensor rows = tensor.rows(1, 3, "b");
  EXPECT_EQ(rows.name, "b");
  EXPECT_EQ(rows.shape, (Shape{2, 2, 1}));
  EXPECT_EQ(rows.bytes.data(), tensor.bytes.data() + 8);
  EXPECT_EQ(rows.bytes.size(), 16u);
  EXPECT_EQ(tensor.rows(2, 2, "none").bytes.size(), 0u);
  EXPECT_EQ(tensor.reshaped({6}).bytes.data(), tensor.bytes.data());
  EXPECT_EQ(tensor.reshaped({6}).shape, (Shape{6}));
}

}  // namespace
}  // namespace kilin

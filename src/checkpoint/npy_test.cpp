#include "checkpoint/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "support/compare.h"
#include "support/golden.h"

namespace kilin {
namespace {

using testing::TemporaryFolder;

std::vector<std::byte> file_of(const std::string& header, size_t data_bytes, int version = 1) {
  std::string text = std::string("\x93NUMPY") + static_cast<char>(version) + std::string(1, '\0');
  for (size_t i = 0; i < (version == 1 ? 2u : 4u); ++i) text += static_cast<char>(header.size() >> (8 * i));
  text += header + std::string(data_bytes, '\0');
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(Npy, ReadsVersionsOneAndTwoAndEveryNumberType) {
  struct Case {
    const char* descr;
    DType dtype;
  };
  for (const Case& c : {Case{"<f4", DType::f32}, Case{"<f2", DType::f16}, Case{"<f8", DType::f64}, Case{"|i1", DType::i8},
                        Case{"|u1", DType::u8}, Case{"<i2", DType::i16}, Case{"<u2", DType::u16}, Case{"<i4", DType::i32},
                        Case{"<u4", DType::u32}, Case{"<i8", DType::i64}, Case{"<u8", DType::u64}, Case{"|b1", DType::boolean}})
    for (int version : {1, 2}) {
      const std::string header = "{'descr': '" + std::string(c.descr) + "', 'fortran_order': False, 'shape': (2, 3), }  \n";
      const Tensor tensor = parse_npy(file_of(header, 6 * size_of(c.dtype), version), "file");
      EXPECT_EQ(tensor.dtype(), c.dtype) << c.descr;
      EXPECT_EQ(tensor.shape(), (Shape{2, 3})) << c.descr;
    }
}

TEST(Npy, ReadsShapesOfEveryRankAndKeysInAnyOrder) {
  EXPECT_EQ(parse_npy(file_of("{'shape': (), 'descr': '<f4', 'fortran_order': False}\n", 4), "f").shape(), Shape{});
  EXPECT_EQ(parse_npy(file_of("{'fortran_order':False,'shape':(5,),'descr':\"<f4\"}", 20), "f").shape(), (Shape{5}));
  EXPECT_EQ(parse_npy(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }\n", 0), "f").shape(), (Shape{0, 7}));
  EXPECT_EQ(parse_npy(file_of("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2, 1, 2), }\n", 16), "f").shape(),
            (Shape{1, 2, 1, 2}));
}

TEST(Npy, RefusesWhatItDoesNotReadOrTrust) {
  struct Bad {
    const char* header;
    size_t data_bytes;
    ErrorCode code;
    const char* word;
  };
  const ErrorCode corrupt = ErrorCode::Corrupt, unsupported = ErrorCode::Unsupported;
  const Bad cases[] = {
      {"", 0, corrupt, "'{'"},
      {"{", 0, corrupt, "string"},
      {"{}", 0, corrupt, "missing"},
      {"{'descr': '<f4', 'fortran_order': False}", 0, corrupt, "missing"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, corrupt, "descr"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}", 4, corrupt, "more"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4, corrupt, "closing"},
      {"{'descr': '<f4' 'fortran_order': False, 'shape': ()}", 4, corrupt, "'}'"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", 4, corrupt, "True or False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", 4, corrupt, "','"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", 4, corrupt, "'('"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", 4, corrupt, "extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, corrupt, "extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,)}", 4, corrupt, "','"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4, corrupt, "extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0, corrupt, "overflows"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}", 0, corrupt, "overflows"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", 0, corrupt, "0 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4, corrupt, "4 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 9, corrupt, "9 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1)}", 4, unsupported, "axes"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}", 4, unsupported, "Fortran"},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': ()}", 4, unsupported, ">f4"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': ()}", 8, unsupported, "<c8"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", 8, unsupported, "|O"},
      {"{'descr': '<f4, 'fortran_order': False, 'shape': ()}", 4, unsupported, "'<f4, '"},
  };
  for (const Bad& bad : cases) {
    try {
      parse_npy(file_of(bad.header, bad.data_bytes), "file");
      ADD_FAILURE() << "accepted: " << bad.header;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), bad.code) << bad.header << "\n" << error.what();
      EXPECT_NE(std::string(error.what()).find(bad.word), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(parse_npy(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, 3), "file"), Error);
}

TEST(Npy, AFileCutAnywhereIsRefused) {
  const auto file = file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 8);
  ASSERT_NO_THROW(parse_npy(file, "file"));
  for (size_t n = 0; n < file.size(); ++n) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_THROW(parse_npy(cut, "file"), Error) << n;
  }
}

TEST(NpyWriter, GivesBackWhatWasWrittenWholeOrByRows) {
  TemporaryFolder folder;
  std::vector<float> values(5 * 7);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.25f - 3.0f;
  const MatView<const float> matrix(values.data(), 5, 7);
  NpyWriter writer(folder / "x.npy", 5, 7);
  writer.append(matrix.rows(0, 2));
  writer.append(matrix.rows(2, 2));
  writer.append(matrix.rows(2, 5));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.npy"));  // not before it is whole
  writer.commit();
  const Tensor tensor = read_npy(folder / "x.npy");
  EXPECT_EQ(tensor.shape(), (Shape{5, 7}));
  EXPECT_BYTES_EQ(std::span<const float>(tensor.as<float>(), 35), values);

  NpyWriter strided(folder / "y.npy", 5, 3);  // columns of a wider matrix
  strided.append(matrix.columns(2, 5));
  strided.commit();
  EXPECT_EQ(read_npy(folder / "y.npy").as<float>()[3], values[7 + 2]);
}

TEST(NpyWriter, HoldsTheCallerToThePromisedShape) {
  TemporaryFolder folder;
  const std::vector<float> values(12);
  {
    NpyWriter writer(folder / "x.npy", 3, 4);
    EXPECT_THROW(writer.append({values.data(), 4, 3}), Error);
    EXPECT_THROW(writer.append({values.data(), 2, 6}), Error);
    writer.append({values.data(), 2, 4});
    EXPECT_THROW(writer.append({values.data(), 2, 4}), Error);
    EXPECT_THROW(writer.commit(), Error);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "x.npy"));
}

TEST(NpyMatrix, GivesTheRowsOfItsFile) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  {
    NpyWriter writer(folder / "x.npy", 3, 2);
    writer.append({values.data(), 3, 2});
    writer.commit();
  }
  const NpyMatrix matrix(folder / "x.npy");
  EXPECT_EQ(matrix.rows(), 3u);
  EXPECT_EQ(matrix.cols(), 2u);
  for (size_t r = 0; r < 3; ++r) {
    std::vector<float> row(2);
    matrix.read(r, row);
    EXPECT_EQ(row, (std::vector<float>{values[2 * r], values[2 * r + 1]}));
  }
}

TEST(NpyMatrix, MayBeFollowedByOneMoreArrayAndNothingElse) {
  const testing::TemporaryFolder folder;
  Tensor note(DType::i64, {2});
  note.as<int64_t>()[0] = 512;
  note.as<int64_t>()[1] = -1;
  const std::vector<float> values = {1, 2, 3, 4};
  NpyWriter writer(folder / "x.npy", 2, 2);
  writer.append({values.data(), 2, 2});
  writer.commit(note);
  const NpyMatrix matrix(folder / "x.npy");
  EXPECT_EQ(matrix.rows(), 2u);
  ASSERT_EQ(matrix.note().elements(), 2u);
  EXPECT_EQ(matrix.note().as<int64_t>()[0], 512);
  EXPECT_EQ(matrix.note().as<int64_t>()[1], -1);
  EXPECT_THROW(read_npy(folder / "x.npy"), Error);  // two arrays are no tensor
  std::ofstream(folder / "x.npy", std::ios::app | std::ios::binary) << "more";
  EXPECT_THROW(NpyMatrix{folder / "x.npy"}, Error);
}

TEST(NpyMatrix, RefusesWhatIsNoMatrixOfFloats) {
  GOLDEN_OR_SKIP(ids, "tiny/T003/ids.npy");
  EXPECT_THROW(NpyMatrix{ids}, Error);
}

TEST(Npy, ReadsTheGoldenFiles) {
  GOLDEN_OR_SKIP(ids, "tiny/T003/ids.npy");
  GOLDEN_OR_SKIP(logits, "tiny/T003/logits.npy");
  EXPECT_EQ(read_npy(ids).dtype(), DType::i32);
  EXPECT_EQ(read_npy(ids).shape(), (Shape{3}));
  EXPECT_EQ(read_npy(logits).dtype(), DType::f32);
  EXPECT_EQ(read_npy(logits).shape(), (Shape{3, 512}));
}

TEST(Npy, ATensorOfAnyRankIsReadBackAsItWasWritten) {
  const testing::TemporaryFolder folder;
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{2, 0, 3}, Shape{2, 3, 2, 5}})
    for (DType dtype : {DType::f32, DType::i32, DType::i64}) {
      const Tensor tensor(dtype, shape);
      for (size_t i = 0; i < tensor.bytes(); ++i) tensor.data()[i] = static_cast<std::byte>(i);
      write_npy(folder / "a.npy", tensor);
      const Tensor read = read_npy(folder / "a.npy");
      EXPECT_EQ(read.shape(), shape);
      EXPECT_EQ(read.dtype(), dtype);
      EXPECT_EQ(std::memcmp(read.data(), tensor.data(), tensor.bytes()), 0) << to_string(shape);
    }
  EXPECT_THROW(write_npy(folder / "b.npy", Tensor(DType::bf16, {1})), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "b.npy"));
}

}  // namespace
}  // namespace kilin

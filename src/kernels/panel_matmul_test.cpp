// Products with weight matrices in panels, exact and by int8.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/compare.h"
#include "support/int8_matrix.h"
#include "support/kernels.h"
#include "support/panels.h"

namespace kilin {
namespace {

using testing::Blocks;
using testing::Form;
using testing::Int8Matrix;
using testing::Matrix;
using testing::Panels;
using testing::Random;

// Columns that end within a group of 256 where the format allows it.
std::vector<size_t> widths(BlockFormat format) {
  const size_t elements = block_size(format).elements;
  if (elements == 256) return {256, 768};
  return {32, 64, 256, 288, 608};
}

bool fuses(const Form& form) { return form.name != "scalar"; }

TEST(PanelMatmul, AgreesWithDoubleForEveryFormat) {
  for (BlockFormat format : kBlockFormats)
    for (size_t K : widths(format))
      for (size_t M : {0, 1, 3, 7}) {
        const size_t N = 1 + (K + 29 * M) % 90;
        Random random(K * 100 + M);
        const Blocks blocks(format, N, K, K + M);
        const Panels w(blocks);
        const std::vector<float> weights = blocks.values();
        const Matrix x(M, K, random);
        std::vector<float> expected;
        for (size_t m = 0; m < M; ++m)
          for (size_t n = 0; n < N; ++n) {
            double sum = 0;
            for (size_t k = 0; k < K; ++k) sum += static_cast<double>(x.at(m, k)) * static_cast<double>(weights[n * K + k]);
            expected.push_back(static_cast<float>(sum));
          }
        Matrix naive(M, N);
        naive_kernels().matmul(w.matrix(), x.view(), 0, N, naive.view());
        EXPECT_CLOSE_TO_MAX(naive.values(), expected, 1e-5) << to_string(format) << " " << M << " x " << N << " x " << K;
        for (const Form& form : testing::isa_forms()) {
          Matrix y(M, N);
          form.table.matmul(w.matrix(), x.view(), 0, N, y.view());
          EXPECT_CLOSE_TO_MAX(y.values(), expected, 1e-5) << form.name << " " << to_string(format);
          if (fuses(form)) {
            EXPECT_BYTES_EQ(y.values(), naive.values()) << form.name << " " << to_string(format);
          }
          EXPECT_TRUE(y.gaps_are_intact()) << form.name << " " << to_string(format);
        }
      }
}

TEST(PanelMatmul, OfOneHotRowsGivesTheWeightsThemselves) {
  for (BlockFormat format : kBlockFormats) {
    const size_t K = block_size(format).elements, N = 19;
    const Blocks blocks(format, N, K, 5);
    const Panels w(blocks);
    Matrix x(K, K);
    for (size_t i = 0; i < K; ++i)
      for (size_t k = 0; k < K; ++k) x.at(i, k) = i == k ? 1.f : 0.f;
    const std::vector<float> weights = blocks.values();
    for (const Form& form : testing::all_forms()) {
      Matrix y(K, N);
      form.table.matmul(w.matrix(), x.view(), 0, N, y.view());
      for (size_t k = 0; k < K; ++k)
        for (size_t n = 0; n < N; ++n) ASSERT_EQ(y.at(k, n), weights[n * K + k]) << form.name << " " << to_string(format);
    }
  }
}

TEST(GatherRows, DequantizesRowsOfBlocks) {
  for (BlockFormat format : kBlockFormats) {
    const size_t K = 256;
    const Blocks blocks(format, 6, K, 3);
    const std::vector<float> values = blocks.values();
    const std::vector<int32_t> ids = {5, 0, 0, 3};
    for (const Form& form : testing::all_forms()) {
      Matrix out(ids.size(), K);
      form.table.gather_rows(blocks.matrix(), ids, out.view());
      EXPECT_TRUE(out.gaps_are_intact());
      for (size_t i = 0; i < ids.size(); ++i)
        for (size_t k = 0; k < K; ++k) ASSERT_EQ(out.at(i, k), values[static_cast<size_t>(ids[i]) * K + k]) << form.name;
    }
  }
}

// The exact result of matmul_int8, in double, from the same int8 rows.
std::vector<float> int8_product(const Blocks& blocks, const Int8Rows& x) {
  const std::vector<float> weights = blocks.values();
  const size_t K = x.cols();
  std::vector<float> y;
  for (size_t m = 0; m < x.rows(); ++m)
    for (size_t n = 0; n < blocks.matrix().rows(); ++n) {
      double sum = 0;
      for (size_t k = 0; k < K; ++k)
        sum += static_cast<double>(x.values.row(m)[k]) * static_cast<double>(x.scales.row(m)[k / kInt8Group]) *
               static_cast<double>(weights[n * K + k]);
      y.push_back(static_cast<float>(sum));
    }
  return y;
}

TEST(MatmulInt8, AgreesWithDoubleForEveryFormatAndWithTheNaiveFormInEveryByte) {
  for (BlockFormat format : kBlockFormats)
    for (size_t K : widths(format))
      for (size_t M : {0, 1, 2, 3, 4, 5, 6, 13}) {
        const size_t N = 1 + (K + 29 * M) % 150;
        Random random(K * 100 + M);
        const Blocks blocks(format, N, K, K + M);
        const Panels w(blocks);
        const Int8Matrix x(M, K, random);
        Matrix naive(M, N);
        naive_kernels().matmul_int8(w.matrix(), x.rows(), 0, N, naive.view());
        EXPECT_CLOSE_TO_MAX(naive.values(), int8_product(blocks, x.rows()), 2e-6)
            << to_string(format) << " " << M << " x " << N << " x " << K;
        for (const Form& form : testing::isa_forms()) {
          Matrix y(M, N);
          form.table.matmul_int8(w.matrix(), x.rows(), 0, N, y.view());
          if (fuses(form))
            EXPECT_BYTES_EQ(y.values(), naive.values()) << form.name << " " << to_string(format) << " " << M << " x " << N;
          else
            EXPECT_CLOSE_TO_MAX(y.values(), naive.values(), 2e-6) << form.name << " " << to_string(format);
          EXPECT_TRUE(y.gaps_are_intact()) << form.name << " " << to_string(format);
        }
      }
}

TEST(MatmulInt8, IsExactWhereEveryProductIsLargest) {  // 16 bits would saturate
  for (BlockFormat format : kBlockFormats) {
    const size_t K = 256, N = 16;
    for (unsigned byte : {0xffu, 0x80u, 0x7fu, 0x00u}) {
      std::vector<std::byte> rows(N * StorageFormat(format).bytes_of(K), static_cast<std::byte>(byte));
      BlockParts parts;
      for (size_t b = 0; b < rows.size() / block_size(format).bytes; ++b) {
        std::byte* block = rows.data() + b * block_size(format).bytes;
        take_apart(format, block, parts);
        parts.d = 1, parts.dmin = block_traits(format).has_offsets ? 1 : 0;
        put_together(format, parts, block);
      }
      const Panels w(PackedMatrix(format, N, K, rows.data()));
      for (int sign : {-1, 1}) {
        Matrix x(5, K);
        for (size_t m = 0; m < 5; ++m)
          for (size_t k = 0; k < K; ++k) x.at(m, k) = static_cast<float>(sign * (m == 0 && k % 2 == 0 ? -1 : 1));
        const Int8Matrix int8(x);
        Matrix naive(5, N);
        naive_kernels().matmul_int8(w.matrix(), int8.rows(), 0, N, naive.view());
        for (const Form& form : testing::isa_forms()) {
          Matrix y(5, N);
          form.table.matmul_int8(w.matrix(), int8.rows(), 0, N, y.view());
          EXPECT_CLOSE_TO_MAX(y.values(), naive.values(), fuses(form) ? 0 : 1e-6) << form.name << " " << to_string(format);
        }
      }
    }
  }
}

// For any cut of rows or columns: `product` writes columns [begin, end) of rows [first, last).
template <typename Product>
void expect_same_bytes_for_any_cut(size_t M, size_t N, const std::string& what, const Product& product) {
  Matrix whole(M, N), alone(M, N);
  product(0, M, 0, N, whole);
  for (size_t m = 0; m < M; ++m) product(m, m + 1, 0, N, alone);
  EXPECT_BYTES_EQ(alone.values(), whole.values()) << what << " row by row";
  for (size_t cut = 0; cut <= N; cut += 3) {
    Matrix in_two(M, N);
    product(0, M, cut, N, in_two);
    product(0, M, 0, cut, in_two);
    EXPECT_BYTES_EQ(in_two.values(), whole.values()) << what << " cut at column " << cut;
    EXPECT_TRUE(in_two.gaps_are_intact()) << what << " cut at column " << cut;
  }
  for (size_t cut = 0; cut <= M; cut += 2) {
    Matrix in_two(M, N);
    product(0, cut, 0, N, in_two);
    product(cut, M, 0, N, in_two);
    EXPECT_BYTES_EQ(in_two.values(), whole.values()) << what << " cut at row " << cut;
  }
}

TEST(PanelMatmul, RowsAloneOrTogetherAndAnyCutGiveTheSameBytes) {
  constexpr size_t M = 9, N = 75;
  for (BlockFormat format : kBlockFormats) {
    const size_t K = widths(format).back();
    Random random(K);
    const Panels w(Blocks(format, N, K, 1));
    const Matrix x(M, K, random);
    for (const Form& form : testing::isa_forms())
      expect_same_bytes_for_any_cut(M, N, form.name + " " + std::string(to_string(format)),
                                    [&](size_t first, size_t last, size_t begin, size_t end, Matrix& y) {
                                      form.table.matmul(w.matrix(), x.view().rows(first, last), begin, end,
                                                        y.view().rows(first, last));
                                    });
  }
}

TEST(MatmulInt8, RowsAloneOrTogetherAndAnyCutGiveTheSameBytes) {
  constexpr size_t M = 14, N = 141;
  for (BlockFormat format : kBlockFormats) {
    const size_t K = widths(format).back();
    Random random(K);
    const Panels w(Blocks(format, N, K, 1));
    const Int8Matrix x(M, K, random);
    for (const Form& form : testing::isa_forms())
      expect_same_bytes_for_any_cut(M, N, form.name + " " + std::string(to_string(format)),
                                    [&](size_t first, size_t last, size_t begin, size_t end, Matrix& y) {
                                      form.table.matmul_int8(w.matrix(), x.rows().slice(first, last), begin, end,
                                                             y.view().rows(first, last));
                                    });
  }
}

TEST(QuantizeRows, GivesTheNaiveFormsBytesAndErrsByHalfAScaleAtMost) {
  for (size_t K : {1, 15, 16, 31, 32, 255, 256, 257, 600})
    for (float magnitude : {1e-20f, 1.f, 1e20f}) {
      Random random(K);
      const Matrix x(3, K, random, -magnitude, magnitude);
      const Int8Matrix naive(x);
      for (size_t t = 0; t < 3; ++t)
        for (size_t k = 0; k < K; ++k) {
          const double scale = naive.rows().scales.row(t)[k / kInt8Group], value = naive.rows().values.row(t)[k];
          EXPECT_LE(std::abs(value), 127);
          EXPECT_LE(std::abs(value * scale - static_cast<double>(x.at(t, k))), scale * 0.50001) << K;
        }
      for (const Form& form : testing::isa_forms()) {
        const Int8Matrix fast(x, form.table);
        EXPECT_BYTES_EQ(fast.values(), naive.values()) << form.name << " " << K;
        EXPECT_BYTES_EQ(fast.scales(), naive.scales()) << form.name << " " << K;
        EXPECT_BYTES_EQ(fast.sums(), naive.sums()) << form.name << " " << K;
      }
    }
}

TEST(QuantizeRows, GivesTheLargestMagnitudeOfAGroup127) {
  Matrix x(1, 300);
  for (size_t k = 0; k < 300; ++k) x.at(0, k) = k == 7 ? -3.f : k == 290 ? 0.5f : 0.f;
  for (const Form& form : testing::all_forms()) {
    const Int8Matrix int8(x, form.table);
    EXPECT_EQ(int8.rows().values.row(0)[7], -127) << form.name;
    EXPECT_EQ(int8.rows().values.row(0)[290], 127) << form.name;
    EXPECT_EQ(int8.rows().scales.row(0)[1], 0.5f / 127.f) << form.name;
  }
}

TEST(QuantizeRows, GivesZerosForZerosAndNoNumberForAGroupWithNone) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (float bad : {inf, -inf, nan})
    for (size_t at : {0, 100, 255}) {
      Matrix x(1, 512);
      for (size_t k = 0; k < 512; ++k) x.at(0, k) = k == at ? bad : k < 256 ? 1.f : 0.f;
      for (const Form& form : testing::all_forms()) {
        const Int8Matrix int8(x, form.table);
        EXPECT_TRUE(std::isnan(int8.rows().scales.row(0)[0])) << form.name << " " << bad << " at " << at;
        EXPECT_EQ(int8.rows().scales.row(0)[1], 0.f) << form.name;
        for (size_t k = 0; k < 512; ++k) EXPECT_EQ(int8.rows().values.row(0)[k], 0) << form.name;
        for (size_t k = 0; k < 32; ++k) EXPECT_EQ(int8.rows().sums.row(0)[k], 0) << form.name;
        const Panels w(Blocks(BlockFormat::q8_0, 3, 512, 1));
        Matrix y(1, 3);
        form.table.matmul_int8(w.matrix(), int8.rows(), 0, 3, y.view());
        for (float value : y.values()) EXPECT_TRUE(std::isnan(value)) << form.name;
      }
    }
}

TEST(QuantizeRows, CountsTheLeastMagnitudesAsZero) {
  Matrix x(1, 256);
  for (size_t k = 0; k < 256; ++k) x.at(0, k) = 1e-40f;
  for (const Form& form : testing::all_forms()) {
    const Int8Matrix int8(x, form.table);
    EXPECT_EQ(int8.rows().scales.row(0)[0], 0.f) << form.name;
    EXPECT_EQ(int8.rows().values.row(0)[0], 0) << form.name;
  }
}

}  // namespace
}  // namespace kilin

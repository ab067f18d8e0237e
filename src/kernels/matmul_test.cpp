// Products with weight matrices of every plain format.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/compare.h"
#include "support/kernels.h"

namespace kilin {
namespace {

using testing::Form;
using testing::Matrix;
using testing::Random;

constexpr DType kFormats[] = {DType::f32, DType::f16, DType::bf16};

// Weights in one format, aligned to one element only, and their values in double.
struct Weights {
  Weights(DType format, size_t rows, size_t cols, Random& random) : values(rows * cols), bytes(4 + values.size() * 4) {
    const size_t size = format == DType::f32 ? 4 : 2;
    std::byte* data = bytes.data() + size;
    for (size_t i = 0; i < values.size(); ++i) {
      const float x = random();
      const auto put = [&](auto stored, float value) {
        std::memcpy(data + i * size, &stored, size);
        values[i] = static_cast<double>(value);
      };
      if (format == DType::f32)
        put(x, x);
      else if (format == DType::f16)
        put(to_f16(x), to_float(to_f16(x)));
      else
        put(to_bf16(x), to_float(to_bf16(x)));
    }
    matrix = PackedMatrix(format, rows, cols, data);
  }
  std::vector<double> values;
  std::vector<std::byte> bytes;
  PackedMatrix matrix;
};

std::vector<float> product(const Weights& w, const Matrix& x, size_t M, size_t N, size_t K) {
  std::vector<float> y;
  for (size_t m = 0; m < M; ++m)
    for (size_t n = 0; n < N; ++n) {
      double sum = 0;
      for (size_t k = 0; k < K; ++k) sum += static_cast<double>(x.at(m, k)) * w.values[n * K + k];
      y.push_back(static_cast<float>(sum));
    }
  return y;
}

TEST(Matmul, AgreesWithDoubleForEveryFormatAndAllSmallShapes) {
  for (DType format : kFormats)
    for (size_t K = 1; K <= 70; K += K < 36 ? 1 : 5)
      for (size_t M : {0, 1, 2, 3, 5, 8, 13}) {
        const size_t N = 1 + K % 11;
        Random random(K * 100 + M);
        const Weights w(format, N, K, random);
        const Matrix x(M, K, random);
        for (const Form& form : testing::all_forms()) {
          Matrix y(M, N);
          form.table.matmul(w.matrix, x.view(), 0, N, y.view());
          EXPECT_CLOSE_TO_MAX(y.values(), product(w, x, M, N, K), 2e-6) << form.name << " " << M << " x " << N << " x " << K;
          EXPECT_TRUE(y.gaps_are_intact()) << form.name;
        }
      }
}

TEST(Matmul, StaysAccurateOverLongRows) {
  constexpr size_t M = 3, N = 9, K = 9216;
  for (DType format : kFormats) {
    Random random(1);
    const Weights w(format, N, K, random);
    const Matrix x(M, K, random);
    for (const Form& form : testing::isa_forms()) {
      Matrix y(M, N);
      form.table.matmul(w.matrix, x.view(), 0, N, y.view());
      EXPECT_CLOSE_TO_MAX(y.values(), product(w, x, M, N, K), 2e-6) << form.name;
    }
  }
}

TEST(Matmul, RowsAloneOrTogetherAndAnyCutOfColumnsGiveTheSameBytes) {
  constexpr size_t M = 29, N = 23;
  for (DType format : kFormats)
    for (size_t K : {5, 64, 257}) {
      Random random(K);
      const Weights w(format, N, K, random);
      const Matrix x(M, K, random);
      for (const Form& form : testing::all_forms()) {
        Matrix whole(M, N);
        form.table.matmul(w.matrix, x.view(), 0, N, whole.view());

        Matrix alone(M, N);
        for (size_t m = 0; m < M; ++m) form.table.matmul(w.matrix, x.view().rows(m, m + 1), 0, N, alone.view().rows(m, m + 1));
        EXPECT_BYTES_EQ(alone.values(), whole.values()) << form.name << " row by row, K " << K;

        for (size_t cut = 0; cut <= N; ++cut) {
          Matrix in_two(M, N);
          form.table.matmul(w.matrix, x.view(), cut, N, in_two.view());
          form.table.matmul(w.matrix, x.view(), 0, cut, in_two.view());
          EXPECT_BYTES_EQ(in_two.values(), whole.values()) << form.name << " cut at column " << cut << ", K " << K;
          EXPECT_TRUE(in_two.gaps_are_intact());
        }
        for (size_t cut = 0; cut <= M; cut += 7) {
          Matrix in_two(M, N);
          form.table.matmul(w.matrix, x.view().rows(0, cut), 0, N, in_two.view().rows(0, cut));
          form.table.matmul(w.matrix, x.view().rows(cut, M), 0, N, in_two.view().rows(cut, M));
          EXPECT_BYTES_EQ(in_two.values(), whole.values()) << form.name << " cut at row " << cut << ", K " << K;
        }
      }
    }
}

TEST(Matmul, BlocksOfRowsThatOutgrowTheCacheGiveTheSameBytes) {
  constexpr size_t M = 30, N = 5, K = 9217;
  Random random(2);
  const Weights w(DType::bf16, N, K, random);
  const Matrix x(M, K, random);
  for (const Form& form : testing::isa_forms()) {
    Matrix whole(M, N), last(1, N);
    form.table.matmul(w.matrix, x.view(), 0, N, whole.view());
    form.table.matmul(w.matrix, x.view().rows(M - 1, M), 0, N, last.view());
    for (size_t n = 0; n < N; ++n) EXPECT_EQ(last.at(0, n), whole.at(M - 1, n)) << form.name;
  }
}

TEST(Matmul, SlicedWeightsAreTheirRows) {
  Random random(5);
  const Weights w(DType::bf16, 12, 40, random);
  const Matrix x(2, 40, random);
  for (const Form& form : testing::all_forms()) {
    Matrix whole(2, 12), part(2, 5);
    form.table.matmul(w.matrix, x.view(), 0, 12, whole.view());
    form.table.matmul(w.matrix.slice_rows(4, 9), x.view(), 0, 5, part.view());
    for (size_t m = 0; m < 2; ++m)
      for (size_t n = 0; n < 5; ++n) EXPECT_EQ(part.at(m, n), whole.at(m, 4 + n)) << form.name;
  }
}

TEST(MatmulTransposed, AgreesWithDoubleAndGivesRowsTheSameBytesAloneOrTogether) {
  for (DType format : kFormats)
    for (size_t K = 1; K <= 140; K += K < 36 ? 1 : 13) {
      const size_t N = 1 + K % 13, M = 1 + K % 6;
      Random random(K);
      const Weights w(format, N, K, random);
      const Matrix x(M, N, random);
      std::vector<float> expected;
      for (size_t m = 0; m < M; ++m)
        for (size_t k = 0; k < K; ++k) {
          double sum = 0;
          for (size_t n = 0; n < N; ++n) sum += static_cast<double>(x.at(m, n)) * w.values[n * K + k];
          expected.push_back(static_cast<float>(sum));
        }
      for (const Form& form : testing::all_forms()) {
        Matrix y(M, K), alone(M, K);
        form.table.matmul_transposed(w.matrix, x.view(), y.view());
        EXPECT_CLOSE_TO_MAX(y.values(), expected, 2e-6) << form.name << " " << M << " x " << N << " x " << K;
        EXPECT_TRUE(y.gaps_are_intact()) << form.name;
        for (size_t m = 0; m < M; ++m)
          form.table.matmul_transposed(w.matrix, x.view().rows(m, m + 1), alone.view().rows(m, m + 1));
        EXPECT_BYTES_EQ(alone.values(), y.values()) << form.name;
      }
    }
}

TEST(GatherRows, GivesTheRowsExactly) {
  for (DType format : kFormats)
    for (size_t K = 1; K <= 70; ++K) {
      Random random(K);
      const Weights table(format, 6, K, random);
      const std::vector<int32_t> ids = {5, 0, 0, 3};
      for (const Form& form : testing::all_forms()) {
        Matrix out(ids.size(), K);
        form.table.gather_rows(table.matrix, ids, out.view());
        EXPECT_TRUE(out.gaps_are_intact()) << form.name;
        for (size_t i = 0; i < ids.size(); ++i)
          for (size_t k = 0; k < K; ++k)
            ASSERT_EQ(static_cast<double>(out.at(i, k)), table.values[static_cast<size_t>(ids[i]) * K + k]) << form.name;
      }
    }
}

TEST(GatherRows, WidensEveryHalfPrecisionNumberExactly) {
  std::vector<f16> all(65536);
  for (uint32_t bits = 0; bits < all.size(); ++bits) all[bits].bits = static_cast<uint16_t>(bits);
  const PackedMatrix table(DType::f16, 1, all.size(), all.data());
  const int32_t id = 0;
  for (const Form& form : testing::isa_forms()) {
    std::vector<float> out(all.size());
    form.table.gather_rows(table, {&id, 1}, {out.data(), 1, out.size()});
    for (size_t i = 0; i < all.size(); ++i)
      if (!std::isnan(out[i])) {
        ASSERT_EQ(out[i], to_float(all[i])) << form.name << " " << i;
      } else {
        ASSERT_TRUE(std::isnan(to_float(all[i]))) << form.name << " " << i;
      }
  }
}

}  // namespace
}  // namespace kilin

// Products of rows and weights in bf16.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/compare.h"
#include "support/kernels.h"

namespace kilin {
namespace {

using testing::Form;
using testing::Matrix;
using testing::Random;

// Random elements, aligned to one element only, with `gap` elements between rows.
class Halves {
 public:
  Halves(size_t rows, size_t cols, size_t gap, Random& random)
      : rows_(rows), cols_(cols), stride_(cols + gap), data_(1 + rows * stride_) {
    for (bf16& x : data_) x = to_bf16(random());
  }
  MatView<const bf16> view() const { return {data_.data() + 1, rows_, cols_, stride_}; }
  /// @pre no gap
  PackedMatrix weights() const { return {DType::bf16, rows_, cols_, data_.data() + 1}; }
  double at(size_t r, size_t c) const { return static_cast<double>(to_float(view()[r][c])); }

 private:
  size_t rows_, cols_, stride_;
  std::vector<bf16> data_;
};

std::vector<float> product(const Halves& w, const Halves& x) {
  std::vector<float> y;
  for (size_t m = 0; m < x.view().rows(); ++m)
    for (size_t n = 0; n < w.view().rows(); ++n) {
      double sum = 0;
      for (size_t k = 0; k < x.view().cols(); ++k) sum += x.at(m, k) * w.at(n, k);
      y.push_back(static_cast<float>(sum));
    }
  return y;
}

// Products of bf16 are exact in fp32: only the sums round, as with fp32 rows.
constexpr double kTolerance = 2e-6;

TEST(MatmulBf16, AgreesWithDoubleForAllSmallShapes) {
  for (size_t K = 1; K <= 140; K += K < 70 ? 1 : 7)
    for (size_t M : {0, 1, 2, 3, 4, 5, 6, 8, 13}) {
      const size_t N = 1 + K % 11;
      Random random(K * 100 + M);
      const Halves w(N, K, 0, random), x(M, K, 3, random);
      for (const Form& form : testing::all_forms()) {
        Matrix y(M, N);
        form.table.matmul_bf16(w.weights(), x.view(), 0, N, y.view());
        EXPECT_CLOSE_TO_MAX(y.values(), product(w, x), kTolerance) << form.name << " " << M << " x " << N << " x " << K;
        EXPECT_TRUE(y.gaps_are_intact()) << form.name;
      }
    }
}

TEST(MatmulBf16, StaysAccurateOverLongRows) {
  Random random(1);
  const Halves w(9, 9216, 0, random), x(3, 9216, 1, random);
  for (const Form& form : testing::isa_forms()) {
    Matrix y(3, 9);
    form.table.matmul_bf16(w.weights(), x.view(), 0, 9, y.view());
    EXPECT_CLOSE_TO_MAX(y.values(), product(w, x), kTolerance) << form.name;
  }
}

TEST(MatmulBf16, RowsAloneOrTogetherAndAnyCutGiveTheSameBytes) {
  constexpr size_t M = 29, N = 23;
  for (size_t K : {5, 64, 257}) {
    Random random(K);
    const Halves w(N, K, 0, random), x(M, K, 3, random);
    for (const Form& form : testing::all_forms()) {
      Matrix whole(M, N);
      form.table.matmul_bf16(w.weights(), x.view(), 0, N, whole.view());
      for (size_t cut = 0; cut <= N; ++cut) {
        Matrix in_two(M, N);
        form.table.matmul_bf16(w.weights(), x.view(), cut, N, in_two.view());
        form.table.matmul_bf16(w.weights(), x.view(), 0, cut, in_two.view());
        EXPECT_BYTES_EQ(in_two.values(), whole.values()) << form.name << " cut at column " << cut << ", K " << K;
        EXPECT_TRUE(in_two.gaps_are_intact());
      }
      for (size_t rows = 1; rows <= 8; ++rows) {
        Matrix in_parts(M, N);
        for (size_t m = 0; m < M; m += rows) {
          const size_t end = std::min(m + rows, M);
          form.table.matmul_bf16(w.weights(), x.view().rows(m, end), 0, N, in_parts.view().rows(m, end));
        }
        EXPECT_BYTES_EQ(in_parts.values(), whole.values()) << form.name << " " << rows << " rows at a time, K " << K;
      }
    }
  }
}

TEST(MatmulBf16, BlocksOfRowsThatOutgrowTheCacheGiveTheSameBytes) {
  constexpr size_t M = 50, N = 5, K = 9217;
  Random random(2);
  const Halves w(N, K, 0, random), x(M, K, 1, random);
  for (const Form& form : testing::isa_forms()) {
    Matrix whole(M, N), last(1, N);
    form.table.matmul_bf16(w.weights(), x.view(), 0, N, whole.view());
    form.table.matmul_bf16(w.weights(), x.view().rows(M - 1, M), 0, N, last.view());
    for (size_t n = 0; n < N; ++n) EXPECT_EQ(last.at(0, n), whole.at(M - 1, n)) << form.name;
  }
}

// kernel_table.h says this of vdpbf16ps: two fused steps, the odd column first.
TEST(MatmulBf16, TheInstructionGivesTheBytesOfFusedMultiplyAdds) {
  const CpuInfo cpu = CpuInfo::detect();
  if (kernels_of(Isa::Avx512Bf16) == nullptr || !supports(cpu, Isa::Avx512Bf16)) GTEST_SKIP() << "this CPU has no avx512+bf16";
  for (size_t K : {1, 2, 31, 64, 2304, 2345}) {
    Random random(K);
    const Halves w(19, K, 0, random), x(7, K, 3, random);
    Matrix with(7, 19), without(7, 19);
    kernels_of(Isa::Avx512Bf16)->matmul_bf16(w.weights(), x.view(), 0, 19, with.view());
    kernels_of(Isa::Avx512)->matmul_bf16(w.weights(), x.view(), 0, 19, without.view());
    EXPECT_BYTES_EQ(with.values(), without.values()) << K;
  }
}

}  // namespace
}  // namespace kilin

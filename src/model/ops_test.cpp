#include "model/ops.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/cpu_info.h"
#include "support/compare.h"
#include "support/int8_matrix.h"
#include "support/isas.h"
#include "support/kernels.h"
#include "support/panels.h"

namespace kilin {
namespace {

using testing::Blocks;
using testing::Int8Matrix;
using testing::Matrix;
using testing::Panels;
using testing::Random;

struct Machine {
  Machine(const std::string& isa, size_t threads)
      : pool(threads), kernels(select_kernels(CpuInfo::detect(), testing::kernels_for(isa))) {}
  ExecContext context() { return {pool, kernels, communicator, workspace}; }

  ThreadPool pool;
  KernelTable kernels;
  LocalCommunicator communicator;
  Workspace workspace{0};
};

// One product of each kind of rows, of widths that tiles do not divide.
class ThreeKinds {
 public:
  ThreeKinds(const KernelTable& kernels, size_t rows)
      : random_(rows),
        x_(rows, 512, random_),
        rounded_(rows * 512),
        int8_(x_, kernels),
        bf16_weight_(300 * 512),
        blocks_(BlockFormat::q4_0, 144, 512, 5),
        panels_(blocks_),
        f32_weight_(random_.vector(70 * 512)),
        rounded_w_(DType::bf16, 300, 512, bf16_weight_.data()),
        exact_w_(DType::f32, 70, 512, f32_weight_.data()) {
    kernels.round_to_bf16(x_.view(), {rounded_.data(), rows, 512});
    for (bf16& w : bf16_weight_) w = to_bf16(random_());
  }
  ThreeKinds(const ThreeKinds&) = delete;
  ThreeKinds& operator=(const ThreeKinds&) = delete;

  Product int8(Matrix& y) const { return {panels_.matrix(), int8_.rows(), y.view()}; }
  Product rounded(Matrix& y) const {
    return {rounded_w_, MatView<const bf16>(rounded_.data(), x_.view().rows(), 512), y.view()};
  }
  Product exact(Matrix& y) const { return {exact_w_, x_.view(), y.view()}; }

 private:
  Random random_;
  const Matrix x_;
  std::vector<bf16> rounded_;
  Int8Matrix int8_;
  std::vector<bf16> bf16_weight_;
  Blocks blocks_;
  Panels panels_;
  std::vector<float> f32_weight_;
  PackedMatrix rounded_w_, exact_w_;
};

class Matmul : public ::testing::TestWithParam<std::string> {};

TEST_P(Matmul, ProductsThatShareALoopGiveTheBytesOfEachAlone) {
  ISA_OR_SKIP(GetParam());
  for (size_t threads = 1; threads <= 4; ++threads) {
    Machine machine(GetParam(), threads);
    ExecContext ctx = machine.context();
    for (size_t rows : {0, 1, 3, 64, 150}) {
      const ThreeKinds some(machine.kernels, rows), others(machine.kernels, 2);
      Matrix int8(rows, 144), rounded(rows, 300), exact(rows, 70), other(2, 300);
      Matrix int8_alone = int8, rounded_alone = rounded, exact_alone = exact, other_alone = other;
      matmul(ctx, {some.exact(exact), others.rounded(other), some.int8(int8), some.rounded(rounded)});
      matmul(ctx, {some.int8(int8_alone)});
      matmul(ctx, {some.rounded(rounded_alone)});
      matmul(ctx, {some.exact(exact_alone)});
      matmul(ctx, {others.rounded(other_alone)});
      const std::string what = std::to_string(rows) + " rows, " + std::to_string(threads) + " threads";
      EXPECT_BYTES_EQ(int8.values(), int8_alone.values()) << what;
      EXPECT_BYTES_EQ(rounded.values(), rounded_alone.values()) << what;
      EXPECT_BYTES_EQ(exact.values(), exact_alone.values()) << what;
      EXPECT_BYTES_EQ(other.values(), other_alone.values()) << what;
      for (const Matrix* y : {&int8, &rounded, &exact, &other}) EXPECT_TRUE(y->gaps_are_intact()) << what;
    }
  }
}

TEST_P(Matmul, TilesGiveTheBytesOfTheKernelInOneCall) {
  ISA_OR_SKIP(GetParam());
  Machine machine(GetParam(), 3);
  ExecContext ctx = machine.context();
  const ThreeKinds three(machine.kernels, 150);
  Matrix int8(150, 144), rounded(150, 300), exact(150, 70);
  Matrix int8_whole = int8, rounded_whole = rounded, exact_whole = exact;
  matmul(ctx, {three.int8(int8), three.rounded(rounded), three.exact(exact)});
  matmul_tile(machine.kernels, three.int8(int8_whole), 0, 150, 0, 144);
  matmul_tile(machine.kernels, three.rounded(rounded_whole), 0, 150, 0, 300);
  matmul_tile(machine.kernels, three.exact(exact_whole), 0, 150, 0, 70);
  EXPECT_BYTES_EQ(int8.values(), int8_whole.values());
  EXPECT_BYTES_EQ(rounded.values(), rounded_whole.values());
  EXPECT_BYTES_EQ(exact.values(), exact_whole.values());
}

TEST_P(Matmul, CountsEachProductAndNoneWithoutRows) {
  ISA_OR_SKIP(GetParam());
  Machine machine(GetParam(), 2);
  ExecContext ctx = machine.context();
  StageProfile profile;
  ctx.profile = &profile;
  const ThreeKinds three(machine.kernels, 3), none(machine.kernels, 0);
  Matrix int8(3, 144), rounded(3, 300), exact(3, 70), nothing(0, 300);
  matmul(ctx, {});
  matmul(ctx, {none.rounded(nothing)});
  EXPECT_EQ(profile.sum().cost, StageCost{});
  matmul(ctx, {three.int8(int8), none.rounded(nothing), three.rounded(rounded), three.exact(exact)});
  EXPECT_EQ(profile.sum().cost, (StageCost{.weight_bytes = 144 * 512 / 32 * 18 + 300 * 512 * 2 + 70 * 512 * 4,
                                           .int8_operations = 2 * 3 * 144 * 512,
                                           .bf16_operations = 2 * 3 * 300 * 512,
                                           .fp32_operations = 2 * 3 * 70 * 512}));
}

INSTANTIATE_TEST_SUITE_P(Ops, Matmul, ::testing::ValuesIn(testing::isas()),
                         [](const auto& test) { return testing::name_in_tests(test.param); });

}  // namespace
}  // namespace kilin

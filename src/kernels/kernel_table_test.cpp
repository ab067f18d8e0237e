#include "kernels/kernel_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "core/error.h"
#include "kernels/kernel_ops.h"

namespace kilin {
namespace {

template <typename F>
std::string message_of(ErrorCode code, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

CpuInfo cpu_with_nothing() { return CpuInfo{.name = "Plain"}; }

TEST(KernelOps, NameEveryPointerOfTheTableOnce) {
  std::set<std::string_view> names;
  KernelTable table = naive_kernels();
  for_each_kernel_op([&](const auto& op) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_NE(table.*op.member, nullptr) << op.name << " stands twice";
    table.*op.member = nullptr;
  });
  // Clearing every op of the list must clear the whole table.
  KernelTable empty{};
  for_each_kernel_op([&](const auto& op) { EXPECT_EQ(table.*op.member, empty.*op.member); });
  EXPECT_EQ(names.size() * sizeof(void (*)()) + sizeof(void*), sizeof(KernelTable));
}

TEST(SelectKernels, TakesTheBestThatTheCpuHas) {
  EXPECT_EQ(select_kernels(cpu_with_nothing(), {}).isa, Isa::Scalar);
  const CpuInfo cpu = CpuInfo::detect();
  Isa best = Isa::Scalar;
  if (cpu.avx2 && cpu.fma && cpu.f16c) best = cpu.avx_vnni ? Isa::Avx2Vnni : Isa::Avx2;
  if (cpu.avx512) best = cpu.avx512_vnni ? Isa::Avx512Vnni : Isa::Avx512;
  if (cpu.avx512 && cpu.avx512_vnni && cpu.avx512_bf16) best = Isa::Avx512Bf16;
  EXPECT_EQ(select_kernels(cpu, {}).isa, best);
}

TEST(SelectKernels, RefusesAnUnknownInstructionSetAndListsTheKnown) {
  EXPECT_EQ(message_of(ErrorCode::InvalidArgument, [] { select_kernels(cpu_with_nothing(), {.isa = "sse9", .naive = ""}); }),
            "KILIN_ISA: 'sse9' is not an instruction set; known are scalar, avx2, avx2+vnni, avx512, avx512+vnni, avx512+bf16");
}

TEST(SelectKernels, RefusesAnInstructionSetThatTheCpuHasNot) {
  EXPECT_EQ(message_of(ErrorCode::Unsupported, [] { select_kernels(cpu_with_nothing(), {.isa = "avx512", .naive = ""}); }),
            "KILIN_ISA: this CPU (Plain) has no avx512");
}

TEST(SelectKernels, TakesSingleOpsInTheirNaiveForm) {
  const KernelTable table = select_kernels(cpu_with_nothing(), {.isa = "", .naive = "chunk_kda,add"});
  for (const KernelForm& form : describe(table))
    EXPECT_EQ(form.form, form.op == "chunk_kda" || form.op == "add" ? "naive" : "scalar") << form.op;
}

TEST(SelectKernels, TakesAllOpsInTheirNaiveForm) {
  const auto forms = describe(select_kernels(CpuInfo::detect(), {.isa = "", .naive = "all"}));
  EXPECT_EQ(forms.size(), kKernelOpCount);
  for (const KernelForm& form : forms) EXPECT_EQ(form.form, "naive") << form.op;
}

TEST(SelectKernels, RefusesAnUnknownOpAndListsTheKnown) {
  const std::string message =
      message_of(ErrorCode::InvalidArgument, [] { select_kernels(cpu_with_nothing(), {.isa = "", .naive = "add,softmax"}); });
  EXPECT_EQ(
      message.find("KILIN_NAIVE: 'softmax' is not an op; known are all, matmul, quantize_rows, matmul_int8, matmul_bf16,"), 0u)
      << message;
  EXPECT_THROW(select_kernels(cpu_with_nothing(), {.isa = "", .naive = "add,,sigmoid"}), Error);
}

}  // namespace
}  // namespace kilin
